"""The compiled loops of SelfTuning."""
