// The register in which the runtime keeps the running goroutine.

#include "textflag.h"

// func here() uintptr
TEXT ·here(SB), NOSPLIT, $0-8
	MOVD g, R0
	MOVD R0, ret+0(FP)
	RET
