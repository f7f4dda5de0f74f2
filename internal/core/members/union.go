// Union: joins two sorted lists and shares the memory of either where that is the result.

package members

// sameSlice reports whether a and b are one and the same list.
func sameSlice[S ~[]T, T any](a, b S) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// union walks two lists that are sorted by compare and joins entries that compare equal. same reports whether the join
// of two entries is the first, and whether it is the second; join makes one that is neither. The result is a or b
// itself as long as nothing differs from it, so two lists of which one holds all of the other cost no memory.
func union[S ~[]T, T any](a, b S, compare func(x, y *T) int, same func(x, y *T) (isX, isY bool),
	join func(x, y T) T) S {
	if sameSlice(a, b) {
		return a
	}
	var out S
	i, j, isA, isB := 0, 0, true, true // the result so far is a[:i]; it is b[:j]
	for i < len(a) || j < len(b) {
		order := 1
		if j == len(b) {
			order = -1
		} else if i < len(a) {
			order = compare(&a[i], &b[j])
		}
		fromA, fromB := order < 0, order > 0
		if order == 0 {
			fromA, fromB = same(&a[i], &b[j])
		}
		if out == nil && (isA && fromA || isB && fromB) {
			isA, isB = isA && fromA, isB && fromB
		} else {
			if out == nil {
				out = split(a, b, i, j, isA)
			}
			switch {
			case fromA:
				out = append(out, a[i])
			case fromB:
				out = append(out, b[j])
			default:
				out = append(out, join(a[i], b[j]))
			}
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	switch {
	case out != nil:
		return out
	case isA:
		return a
	}
	return b
}

// split makes the list that differs from both from here on, with some room for what only one side has.
func split[S ~[]T, T any](a, b S, i, j int, isA bool) S {
	n := max(len(a), len(b))
	out := make(S, 0, n+n/32+8)
	if isA {
		return append(out, a[:i]...)
	}
	return append(out, b[:j]...)
}
