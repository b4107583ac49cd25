"""The launcher's guards as LLVM IR text: does a call's every argument fit the plan?"""

from __future__ import annotations

TEXT = """
; Are all `count` words at the two places equal?  ANY_STRIDE on the right matches everything.
define internal i1 @same_words(ptr %given, ptr %wanted, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %same ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %compare
compare:
  %g = call i64 @word(ptr %given, i64 %i)
  %w = call i64 @word(ptr %wanted, i64 %i)
  %equal = icmp eq i64 %g, %w
  %any = icmp eq i64 %w, ANY_STRIDE
  %ok = or i1 %equal, %any
  %next = add i64 %i, 1
  br i1 %ok, label %same, label %no
same:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @guard_array(ptr %arg, ptr %object) {
entry:
  %descrplace = getelementptr i8, ptr %object, i64 AT_DESCR
  %descr = load i64, ptr %descrplace
  %descrwanted = call i64 @word(ptr %arg, i64 arg.descr)
  %descrsame = icmp eq i64 %descr, %descrwanted
  %ndplace = getelementptr i8, ptr %object, i64 AT_ND
  %nd32 = load i32, ptr %ndplace
  %nd = sext i32 %nd32 to i64
  %ndwanted = call i64 @word(ptr %arg, i64 arg.ndim)
  %ndsame = icmp eq i64 %nd, %ndwanted
  %flagsplace = getelementptr i8, ptr %object, i64 AT_FLAGS
  %flags32 = load i32, ptr %flagsplace
  %flags = zext i32 %flags32 to i64
  %mask = call i64 @word(ptr %arg, i64 arg.mask)
  %shown = and i64 %flags, %mask
  %wanted = call i64 @word(ptr %arg, i64 arg.wanted)
  %flagssame = icmp eq i64 %shown, %wanted
  %a = and i1 %descrsame, %ndsame
  %b = and i1 %a, %flagssame
  br i1 %b, label %shape, label %no
shape:
  %dims = getelementptr i8, ptr %object, i64 AT_DIMS
  %given = load ptr, ptr %dims
  %expected = call ptr @pointer(ptr %arg, i64 arg.dims)
  %shapesame = call i1 @same_words(ptr %given, ptr %expected, i64 %nd)
  br i1 %shapesame, label %steps, label %no
steps:
  %strides = getelementptr i8, ptr %object, i64 AT_STRIDES
  %givensteps = load ptr, ptr %strides
  %expectedsteps = call ptr @pointer(ptr %arg, i64 arg.strides)
  %stepssame = call i1 @same_words(ptr %givensteps, ptr %expectedsteps, i64 %nd)
  ret i1 %stepssame
no:
  ret i1 false
}

; A Python int or bool as i64; false when it does not fit.
define internal { i64, i1 } @integer(i64 %kind, ptr %object) {
entry:
  %overflow = alloca i32
  %isbool = icmp eq i64 %kind, ARG_BOOL
  br i1 %isbool, label %bool, label %int
bool:
  %true = load ptr, ptr @true
  %is = icmp eq ptr %object, %true
  %bit = zext i1 %is to i64
  %r0 = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %bit, 0
  ret { i64, i1 } %r0
int:
  store i32 0, ptr %overflow
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  %s0 = insertvalue { i64, i1 } poison, i64 %value, 0
  %s1 = insertvalue { i64, i1 } %s0, i1 %fits, 1
  ret { i64, i1 } %s1
}

define internal i1 @guard_integer(ptr %arg, i64 %kind, ptr %object) {
  %pair = call { i64, i1 } @integer(i64 %kind, ptr %object)
  %value = extractvalue { i64, i1 } %pair, 0
  %fits = extractvalue { i64, i1 } %pair, 1
  %low = call i64 @word(ptr %arg, i64 arg.low)
  %high = call i64 @word(ptr %arg, i64 arg.high)
  %above = icmp sge i64 %value, %low
  %below = icmp sle i64 %value, %high
  %in = and i1 %above, %below
  %ok = and i1 %fits, %in
  ret i1 %ok
}

define internal i1 @guard(ptr %arg, ptr %object) {
entry:
  %kind = call i64 @word(ptr %arg, i64 arg.kind)
  %wanted = call i64 @word(ptr %arg, i64 arg.type)
  %identity = icmp eq i64 %kind, ARG_OBJECT
  br i1 %identity, label %exactly, label %typed
exactly:
  %address = ptrtoint ptr %object to i64
  %is = icmp eq i64 %address, %wanted
  ret i1 %is
typed:
  %typeplace = getelementptr i8, ptr %object, i64 AT_TYPE
  %type = load i64, ptr %typeplace
  %exact = icmp eq i64 %type, %wanted
  br i1 %exact, label %value, label %no
value:
  switch i64 %kind, label %integer [ i64 ARG_RAW, label %yes
                                     i64 ARG_ARRAY, label %array ]
array:
  %fits = call i1 @guard_array(ptr %arg, ptr %object)
  ret i1 %fits
integer:
  %within = call i1 @guard_integer(ptr %arg, i64 %kind, ptr %object)
  ret i1 %within
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @guard_all(ptr %plan, ptr %args, i64 %count) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.args)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %good ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %check
check:
  %at = mul i64 %i, arg.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %object = call ptr @pointer(ptr %args, i64 %i)
  %ok = call i1 @guard(ptr %record, ptr %object)
  %next = add i64 %i, 1
  br i1 %ok, label %good, label %no
good:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; Do the words of memory outside of the arguments, such as a function's code, hold what they held?
define internal i1 @words_hold(ptr %plan) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.words)
  %count = call i64 @word(ptr %plan, i64 plan.nwords)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %look ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %look
look:
  %at = mul i64 %i, word.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %place = call ptr @pointer(ptr %record, i64 word.address)
  %found = load i64, ptr %place
  %expected = call i64 @word(ptr %record, i64 word.expected)
  %same = icmp eq i64 %found, %expected
  %next = add i64 %i, 1
  br i1 %same, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i64 @data_of(ptr %args, i64 %index) {
  %object = call ptr @pointer(ptr %args, i64 %index)
  %place = getelementptr i8, ptr %object, i64 AT_DATA
  %data = load i64, ptr %place
  ret i64 %data
}

; Do the arguments lie to each other in memory as the plan assumes?
define internal i1 @relations_hold(ptr %plan, ptr %args) {
entry:
  %records = call ptr @pointer(ptr %plan, i64 plan.relations)
  %count = call i64 @word(ptr %plan, i64 plan.nrelations)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %good ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %check
check:
  %at = mul i64 %i, relation.SIZE
  %r = getelementptr i64, ptr %records, i64 %at
  %first = call i64 @word(ptr %r, i64 relation.first)
  %second = call i64 @word(ptr %r, i64 relation.second)
  %data1 = call i64 @data_of(ptr %args, i64 %first)
  %data2 = call i64 @data_of(ptr %args, i64 %second)
  %kind = call i64 @word(ptr %r, i64 relation.kind)
  %wantsame = icmp eq i64 %kind, RELATION_SAME
  %low1 = call i64 @word(ptr %r, i64 relation.low1)
  %high1 = call i64 @word(ptr %r, i64 relation.high1)
  %low2 = call i64 @word(ptr %r, i64 relation.low2)
  %high2 = call i64 @word(ptr %r, i64 relation.high2)
  %begin1 = add i64 %data1, %low1
  %end1 = add i64 %data1, %high1
  %begin2 = add i64 %data2, %low2
  %end2 = add i64 %data2, %high2
  %same = icmp eq i64 %begin1, %begin2
  %before = icmp ule i64 %end1, %begin2
  %after = icmp ule i64 %end2, %begin1
  %apart = or i1 %before, %after
  %ok = select i1 %wantsame, i1 %same, i1 %apart
  %next = add i64 %i, 1
  br i1 %ok, label %good, label %no
good:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}
"""
