"""The learners: hyper-parameters, buffers and state around the compiled loops of ``hot``."""
