// The rules of a model by name.

package explore

import "strings"

// Rule is one rule of a model: its bit in a set, its name, and the smallest run that needs it.
type Rule[R ~uint32 | ~uint64, C any] struct {
	Bit  R
	Name string
	In   C
}

// Rules are the rules of a model, in the order of its page.
type Rules[R ~uint32 | ~uint64, C any] []Rule[R, C]

// Names returns the names of all rules.
func (l Rules[R, C]) Names() []string {
	names := make([]string, len(l))
	for i, r := range l {
		names[i] = r.Name
	}
	return names
}

// Of returns the rule of that name.
func (l Rules[R, C]) Of(name string) (R, bool) {
	for _, r := range l {
		if r.Name == name {
			return r.Bit, true
		}
	}
	return 0, false
}

// Text returns the names of the rules in a set, with commas in between.
func (l Rules[R, C]) Text(set R) string {
	var names []string
	for _, r := range l {
		if set&r.Bit != 0 {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ",")
}

// Needs returns for every rule the run that needs it, as without makes it of the run, the rule and its name.
func (l Rules[R, C]) Needs(without func(in C, rule R, name string) C) []C {
	all := make([]C, len(l))
	for i, r := range l {
		all[i] = without(r.In, r.Bit, r.Name)
	}
	return all
}

// Need returns the rule of that bit and name, and the smallest run that needs it.
func Need[R ~uint32 | ~uint64, C any](bit R, name string, in C) Rule[R, C] {
	return Rule[R, C]{bit, name, in}
}
