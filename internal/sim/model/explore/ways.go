// Which states have a way to a good one.

package explore

// Step is one step of a run: the numbers of the state that it leads to and of the one that it is taken in.
type Step struct{ To, From int32 }

// Lead sets good for all states that have a way to a good one by these steps.
func Lead(steps []Step, good []bool) {
	into := make([]int32, len(good)+1) // where the steps to each state begin
	for _, s := range steps {
		into[s.To+1]++
	}
	for i := range good {
		into[i+1] += into[i]
	}
	from, at := make([]int32, len(steps)), append([]int32(nil), into...)
	for _, s := range steps {
		from[at[s.To]] = s.From
		at[s.To]++
	}
	var queue []int32
	for i, g := range good {
		if g {
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		v := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, p := range from[into[v]:into[v+1]] {
			if !good[p] {
				good[p] = true
				queue = append(queue, p)
			}
		}
	}
}
