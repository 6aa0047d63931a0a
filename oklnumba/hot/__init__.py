"""All compiled code: one file an algorithm, and what they share in primitives/.

The arguments of the loops, unless a loop says otherwise: X (n, d); y (n,) or Y (n, K); coins (n,),
uniform draws; ``first``, the row to begin with; ``kernel`` and ``loss``, codes; state and
workspace, NamedTuples with a shape beside each field; ``out``, which the loop writes, (n,) or (n,
K). State changes in place. A loop that can fail returns (rounds played, status of jit.py), or the
status alone. Forecasts may write workspace and pending rounds (primitives/factor.py); these change
no later bit. Letters of shapes: primitives/jit.py.
"""
