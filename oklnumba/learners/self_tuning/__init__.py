"""SelfTuning: the learner, its grid of members, and the layers that aggregate them."""
