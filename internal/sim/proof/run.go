// Run: all states, one strategy after the other.

package proof

import (
	"fmt"
)

// Run runs the proof for 2 to MaxNodes nodes, every state of their directed links in every case.
func Run(nodes int, cases []Case) Result {
	out := Result{Nodes: nodes, States: 1 << (nodes * (nodes - 1)), Strategies: len(cases)}
	for _, c := range cases {
		p := newProver(nodes, c)
		row := Row{Settings: c.Name()}
		for state := range uint32(out.States) {
			p.judge(p.mutual(state), &row, func(what string) {
				if len(out.Failures) < maxFailures {
					out.Failures = append(out.Failures, fmt.Sprintf("%s, links %0*b: %s", row.Settings, nodes*(nodes-1), state, what))
				}
			})
		}
		var part Row
		out.Leaving += p.leave(&part, func(what string) {
			if len(out.Failures) < maxFailures {
				out.Failures = append(out.Failures, fmt.Sprintf("%s, %s", row.Settings, what))
			}
		})
		row.DoubleSurvivors += part.DoubleSurvivors
		row.AllDownUnexpected += part.AllDownUnexpected
		out.Views += p.views
		out.DoubleSurvivors += row.DoubleSurvivors
		out.AllDownUnexpected += row.AllDownUnexpected
		out.Rows = append(out.Rows, row)
	}
	return out
}
