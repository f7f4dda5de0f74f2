// The register or thread-local word in which the runtime keeps the running goroutine.

#include "textflag.h"

// func here() uintptr
TEXT ·here(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
