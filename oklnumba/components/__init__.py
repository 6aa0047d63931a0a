"""What a learner is made of: kernels, feature maps, dictionaries, losses, potentials, scalers."""
