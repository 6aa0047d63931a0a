"""Arguments of a loop that are looked at once, not at each call: that takes 30 ns for each array.

A round of SelfTuning calls some thirty loops on fifty arrays each. ``bind`` lays arguments out as
compiled code has them in memory, ``unbind`` takes them there.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox


class Bound(int):
    """The address of arguments as compiled code sees them; ``arguments`` stay alive with it."""

    arguments: tuple
    words: np.ndarray


class BoundType(types.Type):
    """What numba knows of Bound arguments."""

    def __init__(self, arguments: types.Type):
        self.arguments = arguments
        super().__init__(f"Bound({arguments})")


register_model(BoundType)(models.OpaqueModel)


@typeof_impl.register(Bound)
def _type_of_bound(bound, context):
    return BoundType(numba.typeof(bound.arguments))


@unbox(BoundType)
def _unbox_bound(kind, bound, call):
    address = call.pyapi.long_as_ulonglong(bound)
    return NativeValue(call.builder.inttoptr(address, call.context.get_value_type(kind)))


def _find_words(value) -> list[int]:
    """Return a tuple of arrays, integers and such tuples as numba lays it out in memory."""
    if isinstance(value, tuple):
        return [word for one in value for word in _find_words(one)]
    if isinstance(value, np.ndarray):
        return [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
    return [int(value)]


def bind(arguments: Any) -> Any:
    """Return arguments of a loop that ``unbind`` takes; nobody may resize their arrays."""
    words = np.array(_find_words(arguments), dtype=np.int64)
    bound = Bound(words.ctypes.data)
    bound.arguments, bound.words = arguments, words
    return bound


@intrinsic
def unbind(typing_context, bound):
    """Return the arguments, in compiled code."""

    def load(context, builder, signature, values):
        kind = signature.return_type
        in_memory, value = context.get_data_type(kind), context.get_value_type(kind)
        pointer = builder.bitcast(values[0], in_memory.as_pointer())
        # One load of all: LLVM finds what is used of it in less time than numba lists all.
        if in_memory == value:
            return builder.load(pointer)
        return context.unpack_value(builder, kind, pointer)

    return bound.arguments(bound), load
