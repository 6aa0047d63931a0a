"""What every room stands on: hyper-parameters, inputs, checks, state, files, threads."""
