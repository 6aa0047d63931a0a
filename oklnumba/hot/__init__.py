"""All compiled code: one file an algorithm, and the files that they share.

The loops take the same arguments, unless they say otherwise: X (n, d), y (n,) or Y (n, K); coins
(n,), uniform draws; ``first``, the row to begin with; ``kernel`` and ``loss``, codes; ``setting``,
hyper-parameters; ``counts``, integers, ATOMS first; ``work``, rows of workspace as long as the
buffers; and forecasts and sizes (n,), ``out`` together, written. State is modified in place. Loops
named _rounds return (rounds played, status of jit.py), those named _forecasts leave the state.
Letters of shapes: primitives/jit.py.
"""
