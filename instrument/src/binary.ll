; What each executable or shared object holds once (for each shape that was used in it).
%thermalloc.module = type { i32, i32, i64, i64, i64, i32, i32 }

$__thermalloc_module.@SHAPE@ = comdat any
$__thermalloc_bias = comdat any
$__thermalloc_attach.@SHAPE@ = comdat any
$__thermalloc_detach.@SHAPE@ = comdat any
$__thermalloc_bind = comdat any
$__thermalloc_carry = comdat any
$__thermalloc_range = comdat any

; The descriptor; the runtime fills all but the first two.
@__thermalloc_module.@SHAPE@ = linkonce_odr hidden global %thermalloc.module { i32 1, i32 @NUMBER@, i64 0, i64 0, i64 0, i32 0, i32 0 }, comdat, align 64

; The thread's bias; 0 until the thread first counts.
@__thermalloc_bias = linkonce_odr hidden thread_local(initialexec) global i64 0, comdat, align 8

; Before all other constructors and after all other destructors.
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__thermalloc_attach.@SHAPE@, ptr @__thermalloc_attach.@SHAPE@ }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__thermalloc_detach.@SHAPE@, ptr @__thermalloc_detach.@SHAPE@ }]

declare ptr @llvm.threadlocal.address.p0(ptr)

; The runtime's functions are found through the global offset table, weakly: a direct reference from code that
; is not position-independent would be bound to 0 by the linker.
define linkonce_odr hidden void @__thermalloc_attach.@SHAPE@() #1 comdat {
  %leaf7 = call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 7, i32 0)
  %features = extractvalue { i32, i32, i32, i32 } %leaf7, 2
  %shifted = lshr i32 %features, 4
  %ospke = and i32 %shifted, 1
  store i32 %ospke, ptr getelementptr (%thermalloc.module, ptr @__thermalloc_module.@SHAPE@, i32 0, i32 6)
  %attach = call ptr asm sideeffect ".weak thermalloc_instrument_attach\0A\09movq thermalloc_instrument_attach@GOTPCREL(%rip), $0", "=r,~{dirflag},~{fpsr},~{flags}"()
  %absent = icmp eq ptr %attach, null
  br i1 %absent, label %end, label %present
present:
  call void %attach(ptr @__thermalloc_module.@SHAPE@)
  br label %end
end:
  ret void
}

define linkonce_odr hidden void @__thermalloc_detach.@SHAPE@() #1 comdat {
  %detach = call ptr asm sideeffect ".weak thermalloc_instrument_detach\0A\09movq thermalloc_instrument_detach@GOTPCREL(%rip), $0", "=r,~{dirflag},~{fpsr},~{flags}"()
  %absent = icmp eq ptr %detach, null
  br i1 %absent, label %end, label %present
present:
  call void %detach(ptr @__thermalloc_module.@SHAPE@)
  br label %end
end:
  ret void
}

; Only reached with an address inside, so that the runtime is there.
define linkonce_odr hidden preserve_mostcc void @__thermalloc_bind() #1 comdat {
  %thread = call ptr asm sideeffect ".weak thermalloc_instrument_thread\0A\09movq thermalloc_instrument_thread@GOTPCREL(%rip), $0", "=r,~{dirflag},~{fpsr},~{flags}"()
  %bias = call i64 %thread()
  %cell = call ptr @llvm.threadlocal.address.p0(ptr @__thermalloc_bias)
  store i64 %bias, ptr %cell
  ret void
}

define linkonce_odr hidden preserve_mostcc void @__thermalloc_carry(i64 %cell, i32 %which) #1 comdat {
  %overflow = call ptr asm sideeffect ".weak thermalloc_instrument_overflow\0A\09movq thermalloc_instrument_overflow@GOTPCREL(%rip), $0", "=r,~{dirflag},~{fpsr},~{flags}"()
  call void %overflow(i64 %cell, i32 %which)
  ret void
}

; An access of no bytes is none.
define linkonce_odr hidden preserve_mostcc void @__thermalloc_range(i64 %address, i64 %length, i32 %kinds) #1 comdat {
  %empty = icmp eq i64 %length, 0
  br i1 %empty, label %end, label %some
some:
  %access = call ptr asm sideeffect ".weak thermalloc_instrument_access\0A\09movq thermalloc_instrument_access@GOTPCREL(%rip), $0", "=r,~{dirflag},~{fpsr},~{flags}"()
  call void %access(i64 %address, i64 %length, i32 %kinds)
  br label %end
end:
  ret void
}

attributes #0 = { alwaysinline nounwind "min-legal-vector-width"="0" "less-precise-fpmad"="true" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "approx-func-fp-math"="true" "no-signed-zeros-fp-math"="true" "unsafe-fp-math"="true" }
attributes #1 = { noinline cold nounwind uwtable }
!0 = !{!"branch_weights", i32 1, i32 1048575}
