"""Storing of pointers and scalars in the kernels' argument words, as LLVM IR text."""

from __future__ import annotations

TEXT = """
; slot = address + offset, for each store of a record
define internal void @store_address(i64 %address, i64 %count, ptr %stores) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %at = mul i64 %i, store.SIZE
  %store = getelementptr i64, ptr %stores, i64 %at
  %slot = call ptr @pointer(ptr %store, i64 store.slot)
  %offset = call i64 @word(ptr %store, i64 store.offset)
  %value = add i64 %address, %offset
  store i64 %value, ptr %slot
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; The bits of a scalar object, zero-extended from its size in bytes (`low`), at `high` + offset.
define internal i64 @raw_bits(ptr %arg, ptr %object, i64 %offset) {
entry:
  %size = call i64 @word(ptr %arg, i64 arg.low)
  %where = call i64 @word(ptr %arg, i64 arg.high)
  %at = add i64 %where, %offset
  %place = getelementptr i8, ptr %object, i64 %at
  switch i64 %size, label %eight [ i64 1, label %one  i64 2, label %two  i64 4, label %four ]
one:
  %b = load i8, ptr %place
  %b64 = zext i8 %b to i64
  ret i64 %b64
two:
  %h = load i16, ptr %place
  %h64 = zext i16 %h to i64
  ret i64 %h64
four:
  %w = load i32, ptr %place
  %w64 = zext i32 %w to i64
  ret i64 %w64
eight:
  %d64 = load i64, ptr %place
  ret i64 %d64
}

define internal i64 @converted(i64 %mode, i64 %value) {
entry:
  switch i64 %mode, label %raw [ i64 STORE_F64_AS_F32, label %narrow
                                 i64 STORE_INT_AS_F64, label %wide
                                 i64 STORE_INT_AS_F32, label %both ]
raw:
  ret i64 %value
narrow:
  %f = bitcast i64 %value to double
  %f32 = fptrunc double %f to float
  br label %single
both:
  %i = sitofp i64 %value to double
  %i32 = fptrunc double %i to float
  br label %single
single:
  %s = phi float [ %f32, %narrow ], [ %i32, %both ]
  %sbits = bitcast float %s to i32
  %s64 = zext i32 %sbits to i64
  ret i64 %s64
wide:
  %d = sitofp i64 %value to double
  %dbits = bitcast double %d to i64
  ret i64 %dbits
}

define internal void @store_scalar(ptr %arg, i64 %kind, ptr %object, i64 %count, ptr %stores) {
entry:
  %israw = icmp eq i64 %kind, ARG_RAW
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %put ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %at = mul i64 %i, store.SIZE
  %store = getelementptr i64, ptr %stores, i64 %at
  %slot = call ptr @pointer(ptr %store, i64 store.slot)
  %mode = call i64 @word(ptr %store, i64 store.mode)
  br i1 %israw, label %raw, label %int
raw:
  %offset = call i64 @word(ptr %store, i64 store.offset)
  %bits = call i64 @raw_bits(ptr %arg, ptr %object, i64 %offset)
  br label %put
int:
  %pair = call { i64, i1 } @integer(i64 %kind, ptr %object)
  %number = extractvalue { i64, i1 } %pair, 0
  br label %put
put:
  %value = phi i64 [ %bits, %raw ], [ %number, %int ]
  %final = call i64 @converted(i64 %mode, i64 %value)
  store i64 %final, ptr %slot
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

define internal void @store_all(ptr %plan, ptr %args, i64 %nargs) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.args)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %stored ]
  %end = icmp sge i64 %i, %nargs
  br i1 %end, label %done, label %one
one:
  %at = mul i64 %i, arg.SIZE
  %arg = getelementptr i64, ptr %records, i64 %at
  %object = call ptr @pointer(ptr %args, i64 %i)
  %kind = call i64 @word(ptr %arg, i64 arg.kind)
  %count = call i64 @word(ptr %arg, i64 arg.nstores)
  %stores = call ptr @pointer(ptr %arg, i64 arg.stores)
  %next = add i64 %i, 1
  %isarray = icmp eq i64 %kind, ARG_ARRAY
  br i1 %isarray, label %array, label %scalar
array:
  %data = call i64 @data_of(ptr %args, i64 %i)
  call void @store_address(i64 %data, i64 %count, ptr %stores)
  br label %stored
scalar:
  call void @store_scalar(ptr %arg, i64 %kind, ptr %object, i64 %count, ptr %stores)
  br label %stored
stored:
  br label %loop
done:
  ret void
}
"""
