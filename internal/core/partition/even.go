// Even: what one plan has placed anew is spread until no other way overlaps less (PRT-3).

package partition

import (
	"slices"
	"sort"
)

// even moves fresh instances from members with more to members with fewer, also by way of others, which give one of
// theirs on: the only ways that make the overlap less. Each success makes the sum of the squares of all loads less, so
// it ends.
func (p *planner) even() {
	if len(p.fresh) == 0 {
		return
	}
	for p.improve() {
	}
}

// improve makes one such move, and reports whether there was one. A member that cannot be reached from one with more
// cannot help one with fewer, so all searches together look at each member once.
func (p *planner) improve() bool {
	at := make([]int, len(p.fresh)) // its host
	var from []int
	for k := range p.fresh {
		at[k] = p.hostOf(p.fresh[k])
		if !slices.Contains(from, at[k]) {
			from = append(from, at[k])
		}
	}
	sort.Slice(from, func(i, k int) bool {
		if a, b := p.loads[from[i]], p.loads[from[k]]; a != b {
			return a > b
		}
		return from[i] < from[k]
	})
	s := search{planner: p, at: at, by: make([]int, len(p.members)), seen: make([]bool, len(p.members))}
	for _, u := range from {
		if v := s.from(u); v >= 0 {
			p.loads[u]--
			p.loads[v]++
			for v != u {
				k := s.by[v]
				v, s.at[k] = s.at[k], v
				p.host(p.fresh[k], s.at[k])
			}
			return true
		}
	}
	return false
}

// search looks for the way of an improvement.
type search struct {
	*planner
	at   []int  // where each fresh instance is
	by   []int  // which of them would come to a member
	seen []bool // members that were reached
}

// from returns a member that has at least two instances fewer than u and can be reached, -1 when there is none.
func (s *search) from(u int) int {
	if s.seen[u] {
		return -1
	}
	s.seen[u] = true
	for queue := []int{u}; len(queue) > 0; queue = queue[1:] {
		for k, f := range s.fresh {
			if s.at[k] != queue[0] {
				continue
			}
			for v := range s.members {
				if s.seen[v] || !s.free(f, v) {
					continue
				}
				if s.seen[v], s.by[v] = true, k; s.loads[v] <= s.loads[u]-2 {
					return v
				}
				queue = append(queue, v)
			}
		}
	}
	return -1
}

// free reports whether a member may host a fresh instance and has none of its partition.
func (p *planner) free(f fresh, v int) bool {
	is, m := &p.next[f.partition], &p.members[v]
	return p.takes(m, is.Role) && !names(is, m.ID)
}

// hostOf returns where a fresh instance is, or will be.
func (p *planner) hostOf(f fresh) int {
	is := &p.next[f.partition]
	id := is.Instances[f.slot]
	if c, ok := is.Change(f.slot); ok {
		id = c.To
	}
	return p.index(id)
}

// host moves a fresh instance.
func (p *planner) host(f fresh, v int) {
	is := &p.next[f.partition]
	for k := range is.Changes {
		if is.Changes[k].Slot == f.slot {
			is.Changes[k].To = p.members[v].ID
			return
		}
	}
	is.Instances[f.slot] = p.members[v].ID
}
