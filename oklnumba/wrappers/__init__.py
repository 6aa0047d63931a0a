"""What works around any learner: several outputs, and one fixed function out of a whole run."""
