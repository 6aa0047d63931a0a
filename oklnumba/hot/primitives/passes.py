"""Steps of compiling that go another way than numba's: to shorter LLVM code.

Numba writes 38 instructions for an entry of an array, 110 for a loop over a range and 160 for a
part of an array, of which LLVM leaves a few; but it has to be told all of them first, and that was
a sixth of the time of compiling. Here they are a third of that.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.compiler_machinery import register_pass
from numba.core.ir import Assign
from numba.core.lowering import Lower

DTYPES = types.float64, types.int64, types.uint64
NEXT = types.Pair(types.int64, types.boolean)  # a number of a range, and whether it is one
RANGES = types.range_state64_type, types.range_iter64_type, NEXT
# Fields of numba's record of an array after the two that own its memory; there are seven.
ITEMS, ITEM_SIZE, DATA, SHAPE, STRIDES = range(2, 7)


def constant(value: int) -> ir.Constant:
    """Return LLVM's constant for a whole number."""
    return ir.Constant(ir.IntType(64), value)


def _unread(one) -> bool:
    """Say whether a statement assigns to ``_``, which is numbered where there are several."""
    return isinstance(one, Assign) and one.target.name.split(".")[0] == "_"


class ShortLower(Lower):
    """Numba's way to LLVM code, but for contiguous arrays and for ranges of 64-bit integers."""

    def pre_lower(self):
        """Keep LLVM from taking a function apart into its only caller."""
        super().pre_lower()
        if self.library.apart:
            self.builder.function.attributes.add("noinline")

    def lower_expr(self, resty, expr):
        """Return the value of an expression; here, of the three that loops over ranges have."""
        if expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            value, kind = expr.value.name, self.typeof(expr.value.name)
            if kind in RANGES:
                return getattr(self, f"_{expr.op}")(resty, self.loadvar(value))
        return super().lower_expr(resty, expr)

    def _getiter(self, kind, state):
        """Return a range's iterator: where its next number is, its stop and its step."""
        start, stop, step = cgutils.unpack_tuple(self.builder, state, 3)
        return self._record(kind, [cgutils.alloca_once_value(self.builder, start), stop, step])

    def _iternext(self, kind, iterator):
        """Return the next number, and whether there is one: there is none for a step of 0."""
        builder, none = self.builder, constant(0)
        where, stop, step, _ = cgutils.unpack_tuple(builder, iterator, 4)
        number = builder.load(where)
        builder.store(builder.add(number, step, flags=["nsw"]), where)
        above = builder.and_(
            builder.icmp_signed("<", step, none), builder.icmp_signed(">", number, stop)
        )
        below = builder.icmp_signed("<", number, stop)
        more = builder.select(builder.icmp_signed(">", step, none), below, above)
        return self._record(kind, [number, more])

    def _pair_first(self, kind, pair):
        return self.builder.extract_value(pair, 0)

    def _pair_second(self, kind, pair):
        return self.builder.extract_value(pair, 1)

    def _record(self, kind, fields):
        """Return LLVM's record of a type, its last fields undefined."""
        record = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
        for i, field in enumerate(fields):
            record = self.builder.insert_value(record, field, i)
        return record

    def lower_getitem(self, resty, expr, value, index, signature):
        """Return an entry of an array, or a part of it."""
        place = self._place(value, index)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        address, shape = place
        if not shape:
            return self.builder.load(address)
        items, *others = shape
        for size in others:
            items = self.builder.mul(items, size)
        fields = cgutils.unpack_tuple(self.builder, self.loadvar(value.name), STRIDES + 1)
        strides = cgutils.unpack_tuple(self.builder, fields[STRIDES])[-len(shape) :]
        fields[ITEMS], fields[DATA] = items, address
        fields[SHAPE:] = (cgutils.pack_array(self.builder, each) for each in (shape, strides))
        return self._record(resty, fields)

    def lower_setitem(self, target_var, index_var, value_var, signature):
        """Store an entry."""
        place = self._place(target_var, index_var)
        if place is None or place[1]:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value, dtype = value_var.name, self.typeof(target_var.name).dtype
        number = self.context.cast(self.builder, self.loadvar(value), self.typeof(value), dtype)
        return self.builder.store(number, place[0])

    def _place(self, array_var, index_var) -> tuple[ir.Value, list[ir.Value]] | None:
        """Return where an index is, integers after which there may be one slice, and the shape.

        An entry has no shape. None for what is left to numba: other arrays and indices, and bounds
        that are checked.
        """
        array, index = self.typeof(array_var.name), self.typeof(index_var.name)
        kinds = list(index) if isinstance(index, types.BaseTuple) else [index]
        slices = kinds[-1:] == [types.slice2_type]
        plain = isinstance(array, types.Array) and array.layout == "C" and array.aligned
        plain = plain and array.dtype in DTYPES and not self.context.enable_boundscheck
        whole = all(types.unliteral(one) == types.int64 for one in kinds[: len(kinds) - slices])
        if not (plain and whole and kinds):
            return None
        builder, record = self.builder, self.loadvar(array_var.name)
        sizes = cgutils.unpack_tuple(builder, builder.extract_value(record, SHAPE))
        indices = [self.loadvar(index_var.name)]
        if isinstance(index, types.BaseTuple):
            indices = cgutils.unpack_tuple(builder, indices[0], len(kinds))
        shape = sizes[len(kinds) :]
        if slices:
            indices[-1], length = self._part(indices[-1], sizes[len(kinds) - 1])
            shape = [length, *shape]
        offset = self._from_end(indices[0], sizes[0])
        for axis, size in enumerate(sizes[1:], 1):
            offset = builder.mul(offset, size)
            if axis < len(kinds):
                offset = builder.add(offset, self._from_end(indices[axis], size))
        return builder.gep(builder.extract_value(record, DATA), [offset]), shape

    def _part(self, bounds, size):
        """Return where a slice of so many begins, and its length."""
        builder = self.builder
        first, stop, _ = cgutils.unpack_tuple(builder, bounds, 3)
        first, stop = (self._between(self._from_end(b, size), size) for b in (first, stop))
        return first, self._between(builder.sub(stop, first), size)

    def _from_end(self, number, size):
        """Return an index that counts from the end if it is negative."""
        negative = self.builder.icmp_signed("<", number, constant(0))
        return self.builder.select(negative, self.builder.add(number, size), number)

    def _between(self, number, largest):
        """Return the number in [0, largest] next to this one."""
        builder = self.builder
        number = builder.select(builder.icmp_signed("<", number, constant(0)), constant(0), number)
        return builder.select(builder.icmp_signed("<", largest, number), largest, number)


@register_pass(mutates_CFG=False, analysis_only=False)
class Rewrites(untyped_passes.GenericRewrites):
    """Numba's rewrites, and then nothing is left of ``_``, which may stand for several types."""

    _name = "rewrites"

    def run_pass(self, state):
        """Drop what assigns to it."""
        super().run_pass(state)
        for block in state.func_ir.blocks.values():
            block.body = [one for one in block.body if not _unread(one)]
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class ShortLowering(typed_passes.NativeLowering):
    """The pass that makes LLVM code, by the class above."""

    _name = "short_lowering"
    lowering_class = ShortLower
