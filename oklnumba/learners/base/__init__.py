"""The base classes of all learners.

For one round read, in this order, ``predict_one`` and ``learn_one`` in learner.py, engine.py from
its head to ``_take_forecast``, and the class of core/state.py, which makes the arrays.
Not on its way: files and copies (contents.py), labels that come late (late.py, waiting.py),
learners in learners (wrapper.py), and what families of learners share (expansion.py,
growing_factor.py, linear.py, sampled_span.py).
"""
