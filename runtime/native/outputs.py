"""Making of a plan's results, before and after its run, as LLVM IR text."""

from __future__ import annotations

TEXT = """
define internal ptr @make_array(ptr %out) {
entry:
  %descr = call ptr @pointer(ptr %out, i64 out.object)
  %nd = call i64 @word(ptr %out, i64 out.ndim)
  %nd32 = trunc i64 %nd to i32
  %dims = call ptr @pointer(ptr %out, i64 out.dims)
  %strides = call ptr @pointer(ptr %out, i64 out.strides)
  %nbytes = call i64 @word(ptr %out, i64 out.nbytes)
  %array = call ptr @fusec_new_array(ptr %descr, i32 %nd32, ptr %dims, ptr %strides, i64 %nbytes)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %done, label %store
store:
  %place = getelementptr i8, ptr %array, i64 AT_DATA
  %data = load i64, ptr %place
  %count = call i64 @word(ptr %out, i64 out.nstores)
  %stores = call ptr @pointer(ptr %out, i64 out.stores)
  call void @store_address(i64 %data, i64 %count, ptr %stores)
  br label %done
done:
  ret ptr %array
}

; An array over part of an argument's memory, as writeable as the argument, keeping it alive.
define internal ptr @make_view(ptr %out, ptr %owner) {
entry:
  %descr = call ptr @pointer(ptr %out, i64 out.object)
  %nd = call i64 @word(ptr %out, i64 out.ndim)
  %nd32 = trunc i64 %nd to i32
  %dims = call ptr @pointer(ptr %out, i64 out.dims)
  %strides = call ptr @pointer(ptr %out, i64 out.strides)
  %offset = call i64 @word(ptr %out, i64 out.offset)
  %dataplace = getelementptr i8, ptr %owner, i64 AT_DATA
  %start = load ptr, ptr %dataplace
  %data = getelementptr i8, ptr %start, i64 %offset
  %flagsplace = getelementptr i8, ptr %owner, i64 AT_FLAGS
  %flags = load i32, ptr %flagsplace
  %shared = and i32 %flags, 1280
  %typeplace = getelementptr i8, ptr %owner, i64 AT_TYPE
  %type = load ptr, ptr %typeplace
  call void @Py_IncRef(ptr %descr)
  %array = call ptr @PyArray_NewFromDescr(ptr %type, ptr %descr, i32 %nd32, ptr %dims,
                                          ptr %strides, ptr %data, i32 %shared, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %none, label %attach
attach:
  call void @Py_IncRef(ptr %owner)
  %error = call i32 @PyArray_SetBaseObject(ptr %array, ptr %owner)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %done, label %drop
drop:
  call void @Py_DecRef(ptr %array)
  br label %none
done:
  ret ptr %array
none:
  ret ptr null
}

; Make what exists before the run (arrays, views, arguments, constants).
define internal ptr @make_before(ptr %out, ptr %args) {
entry:
  %kind = call i64 @word(ptr %out, i64 out.kind)
  %source = call i64 @word(ptr %out, i64 out.source)
  switch i64 %kind, label %array [ i64 OUT_VIEW, label %view
                                   i64 OUT_ARGUMENT, label %argument
                                   i64 OUT_OBJECT, label %constant ]
array:
  %new = call ptr @make_array(ptr %out)
  ret ptr %new
view:
  %owner = call ptr @pointer(ptr %args, i64 %source)
  %part = call ptr @make_view(ptr %out, ptr %owner)
  ret ptr %part
argument:
  %given = call ptr @pointer(ptr %args, i64 %source)
  %given2 = call ptr @new_reference(ptr %given)
  ret ptr %given2
constant:
  %object = call ptr @pointer(ptr %out, i64 out.object)
  %object2 = call ptr @new_reference(ptr %object)
  ret ptr %object2
}

; Make a scalar from the storage that a kernel has written.
define internal ptr @make_after(ptr %out) {
entry:
  %kind = call i64 @word(ptr %out, i64 out.kind)
  %storage = call ptr @pointer(ptr %out, i64 out.source)
  switch i64 %kind, label %scalar [ i64 OUT_FLOAT, label %float  i64 OUT_INT, label %int
                                    i64 OUT_BOOL, label %bool  i64 OUT_COMPLEX, label %complex ]
scalar:
  %descr = call ptr @pointer(ptr %out, i64 out.object)
  %s = call ptr @PyArray_Scalar(ptr %storage, ptr %descr, ptr null)
  ret ptr %s
float:
  %f = load double, ptr %storage
  %fo = call ptr @PyFloat_FromDouble(double %f)
  ret ptr %fo
int:
  %i = load i64, ptr %storage
  %io = call ptr @PyLong_FromLongLong(i64 %i)
  ret ptr %io
bool:
  %b = load i8, ptr %storage
  %b64 = zext i8 %b to i64
  %bo = call ptr @PyBool_FromLong(i64 %b64)
  ret ptr %bo
complex:
  %re = load double, ptr %storage
  %implace = getelementptr double, ptr %storage, i64 1
  %im = load double, ptr %implace
  %co = call ptr @PyComplex_FromDoubles(double %re, double %im)
  ret ptr %co
}

; Make the outputs of one phase (0: before the run, 1: after it); false with an exception set.
define internal i1 @make_outputs(ptr %plan, ptr %args, i64 %phase) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.outs)
  %count = call i64 @word(ptr %plan, i64 plan.nouts)
  %results = call ptr @pointer(ptr %plan, i64 plan.results)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %skip ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %at = mul i64 %i, out.SIZE
  %out = getelementptr i64, ptr %records, i64 %at
  %kind = call i64 @word(ptr %out, i64 out.kind)
  %late = icmp sge i64 %kind, OUT_SCALAR
  %when = zext i1 %late to i64
  %now = icmp eq i64 %when, %phase
  %next = add i64 %i, 1
  br i1 %now, label %make, label %skip
make:
  br i1 %late, label %after, label %before
before:
  %made = call ptr @make_before(ptr %out, ptr %args)
  br label %keep
after:
  %scalar = call ptr @make_after(ptr %out)
  br label %keep
keep:
  %object = phi ptr [ %made, %before ], [ %scalar, %after ]
  %place = getelementptr ptr, ptr %results, i64 %i
  store ptr %object, ptr %place
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %no, label %skip
skip:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; Give up the references made so far.
define internal void @drop_outputs(ptr %plan) {
entry:
  %count = call i64 @word(ptr %plan, i64 plan.nouts)
  %results = call ptr @pointer(ptr %plan, i64 plan.results)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %skip ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %place = getelementptr ptr, ptr %results, i64 %i
  %object = load ptr, ptr %place
  store ptr null, ptr %place
  %next = add i64 %i, 1
  %empty = icmp eq ptr %object, null
  br i1 %empty, label %skip, label %drop
drop:
  call void @Py_DecRef(ptr %object)
  br label %skip
skip:
  br label %loop
done:
  ret void
}

; The results as one object: the only one, or a tuple; null with an exception set.
define internal ptr @collect(ptr %plan, i64 %flags) {
entry:
  %results = call ptr @pointer(ptr %plan, i64 plan.results)
  %count = call i64 @word(ptr %plan, i64 plan.nouts)
  %bit = and i64 %flags, FLAG_TUPLE
  %single = icmp eq i64 %bit, 0
  br i1 %single, label %one, label %many
one:
  %object = load ptr, ptr %results
  store ptr null, ptr %results
  ret ptr %object
many:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %done, label %loop
loop:
  %i = phi i64 [ 0, %many ], [ %next, %set ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %set
set:
  %place = getelementptr ptr, ptr %results, i64 %i
  %item = load ptr, ptr %place
  store ptr null, ptr %place
  %s = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %item)
  %next = add i64 %i, 1
  br label %loop
done:
  ret ptr %tuple
}
"""
