// How a latch is given up.

//go:build !race

#include "textflag.h"

// func storeRelease(p *uint32)
TEXT ·storeRelease(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	MOVL $0, (AX)
	RET
