"""Taking the Variables that a call uses, as LLVM IR text: see ``fusec/core/occupancy.py``.

The interpreter's lock is held here, so that plain loads and stores do: between the look at the
words and their marks nothing else runs.
"""

from __future__ import annotations

TEXT = """
; May all be taken?  One that writes needs the Variable alone; one that reads goes after those that
; write, or wait to.
define internal i1 @all_free(ptr %records, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %at = mul i64 %i, hold.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %words = call ptr @pointer(ptr %record, i64 hold.words)
  %writes = call i64 @word(ptr %record, i64 hold.writes)
  %holders = call i64 @word(ptr %words, i64 0)
  %waiting = call i64 @word(ptr %words, i64 1)
  %shared = icmp eq i64 %writes, 0
  %nobody = icmp eq i64 %holders, 0
  %nowriter = icmp sge i64 %holders, 0
  %nonewaits = icmp eq i64 %waiting, 0
  %readable = and i1 %nowriter, %nonewaits
  %ok = select i1 %shared, i1 %readable, i1 %nobody
  %next = add i64 %i, 1
  br i1 %ok, label %more, label %no
more:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; Is every value where the Variable has it by itself?
define internal i1 @all_home(ptr %records, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %at = mul i64 %i, hold.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %words = call ptr @pointer(ptr %record, i64 hold.words)
  %away = call i64 @word(ptr %words, i64 3)
  %ok = icmp eq i64 %away, 0
  %next = add i64 %i, 1
  br i1 %ok, label %more, label %no
more:
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; Mark all: taking (1) or giving back (-1).
define internal void @mark_all(ptr %records, i64 %count, i64 %by) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %at = mul i64 %i, hold.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %words = call ptr @pointer(ptr %record, i64 hold.words)
  %writes = call i64 @word(ptr %record, i64 hold.writes)
  %holders = load i64, ptr %words
  %shared = icmp eq i64 %writes, 0
  %minus = sub i64 0, %by
  %change = select i1 %shared, i64 %by, i64 %minus
  %now = add i64 %holders, %change
  store i64 %now, ptr %words
  %place = getelementptr i64, ptr %words, i64 2
  %version = load i64, ptr %place
  %takes = icmp sgt i64 %by, 0
  %step = select i1 %takes, i64 %writes, i64 0
  %newer = add i64 %version, %step
  store i64 %newer, ptr %place
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; Count those that write as waiting (1) or not (-1).
define internal void @count_waiting(ptr %records, i64 %count, i64 %by) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %end = icmp sge i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %at = mul i64 %i, hold.SIZE
  %record = getelementptr i64, ptr %records, i64 %at
  %words = call ptr @pointer(ptr %record, i64 hold.words)
  %writes = call i64 @word(ptr %record, i64 hold.writes)
  %place = getelementptr i64, ptr %words, i64 1
  %waiting = load i64, ptr %place
  %change = mul i64 %writes, %by
  %now = add i64 %waiting, %change
  store i64 %now, ptr %place
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; 1 where all were taken, 0 where none was
define internal i64 @fusec_hold(ptr %records, i64 %count) {
entry:
  %free = call i1 @all_free(ptr %records, i64 %count)
  br i1 %free, label %take, label %no
take:
  call void @mark_all(ptr %records, i64 %count, i64 1)
  ret i64 1
no:
  ret i64 0
}

define internal void @fusec_give_back(ptr %records, i64 %count) {
  call void @mark_all(ptr %records, i64 %count, i64 -1)
  ret void
}

; The same for code that reads and writes the Variables' own memory.
define internal i64 @fusec_hold_here(ptr %records, i64 %count) {
entry:
  %home = call i1 @all_home(ptr %records, i64 %count)
  br i1 %home, label %take, label %no
take:
  %taken = call i64 @fusec_hold(ptr %records, i64 %count)
  ret i64 %taken
no:
  ret i64 0
}

; A `Hold` of Python: what it is at (0 done, 1 asks, 2 waits, 3 has), how many, and the records.
define i64 @fusec_take(ptr %hold) {
entry:
  %at = call i64 @word(ptr %hold, i64 0)
  %count = call i64 @word(ptr %hold, i64 1)
  %records = call ptr @pointer(ptr %hold, i64 2)
  %taken = call i64 @fusec_hold(ptr %records, i64 %count)
  %waited = icmp eq i64 %at, 2
  %done = icmp ne i64 %taken, 0
  br i1 %done, label %has, label %busy
has:
  store i64 3, ptr %hold
  br i1 %waited, label %waits.no.more, label %out
waits.no.more:
  call void @count_waiting(ptr %records, i64 %count, i64 -1)
  br label %out
busy:
  store i64 2, ptr %hold
  br i1 %waited, label %out, label %waits
waits:
  call void @count_waiting(ptr %records, i64 %count, i64 1)
  br label %out
out:
  ret i64 %taken
}

define void @fusec_leave(ptr %hold) {
entry:
  %at = call i64 @word(ptr %hold, i64 0)
  %count = call i64 @word(ptr %hold, i64 1)
  %records = call ptr @pointer(ptr %hold, i64 2)
  store i64 0, ptr %hold
  switch i64 %at, label %out [ i64 2, label %waited
                               i64 3, label %had ]
waited:
  call void @count_waiting(ptr %records, i64 %count, i64 -1)
  br label %out
had:
  call void @fusec_give_back(ptr %records, i64 %count)
  br label %out
out:
  ret void
}
"""
