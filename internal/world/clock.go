// Clocks: a process's own monotonic time, which begins somewhere and may run a little fast or slow.

package world

import "time"

// clock is the process's own monotonic time.
func (p *Process) clock() time.Duration { return p.clockAt(p.World.Now) }

func (p *Process) clockAt(at time.Duration) time.Duration {
	at -= p.origin
	if p.drift == 0 {
		return at
	}
	return at + at/million*time.Duration(p.drift) + at%million*time.Duration(p.drift)/million
}

const million = 1_000_000

// reaches returns the world's time at which the process's clock shows at least so much.
func (p *Process) reaches(clock time.Duration) time.Duration {
	at := p.origin + clock
	if p.drift == 0 {
		return at
	}
	at = p.origin + clock/(million+time.Duration(p.drift))*million +
		clock%(million+time.Duration(p.drift))*million/(million+time.Duration(p.drift))
	for p.clockAt(at) < clock {
		at++
	}
	return at
}
