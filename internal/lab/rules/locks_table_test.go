// Locks, written down: the table of docs/contributing/locks.md, read, judged and written anew.

package rules

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// lockRow is a row of the table: what a lock protects, and what is taken while it is held.
type lockRow struct {
	protects string
	inner    []string
}

var lockTable = filepath.Join(repository, "docs", "contributing", "locks.md")

// lockLine splits a line of the table: | `lock` | what it protects |
func lockLine(line string) (name, protects string, ok bool) {
	cells := strings.Split(strings.TrimSpace(line), "|")
	if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
		return "", "", false
	}
	return strings.Trim(strings.TrimSpace(cells[1]), "`"), strings.TrimSpace(cells[2]), true
}

// orderLine splits a line of the order: a lock with a colon, indented by four, or locks taken under it, by eight.
func orderLine(line string) (outer string, inner []string, ok bool) {
	if rest, deep := strings.CutPrefix(line, "        "); deep {
		return "", strings.Fields(rest), true
	}
	rest, is := strings.CutPrefix(line, "    ")
	outer, end, found := strings.Cut(strings.TrimSpace(rest), ":")
	return outer, nil, is && found && end == ""
}

// readLocks reads the table and, below it, the order.
func readLocks(text string) map[string]lockRow {
	rows, at := map[string]lockRow{}, ""
	for line := range strings.Lines(text) {
		if name, protects, ok := lockLine(line); ok {
			rows[name] = lockRow{protects: protects}
		}
		if outer, inner, ok := orderLine(line); ok && len(rows) > 0 {
			at = cmp.Or(outer, at)
			row := rows[at]
			row.inner = append(row.inner, inner...)
			rows[at] = row
		}
	}
	return rows
}

// leads reports whether the table leads from one lock to another, directly or over others.
func leads(rows map[string]lockRow, from, to string) bool {
	seen, open := lockSet{}, slices.Clone(rows[from].inner)
	for len(open) > 0 {
		at := open[0]
		if open = open[1:]; at == to {
			return true
		}
		if !seen[at] {
			seen[at] = true
			open = append(open, rows[at].inner...)
		}
	}
	return false
}

// judgeLocks holds the locks and their order against the table.
func judgeLocks(names []string, order []held, rows map[string]lockRow) (found []string) {
	for _, name := range names {
		if rows[name].protects == "" {
			found = append(found, name+": the table does not say what it protects")
		}
	}
	for _, name := range sortedKeys(rows) {
		if !slices.Contains(names, name) {
			found = append(found, name+" is no lock any more: run with -update")
		}
		for _, inner := range rows[name].inner {
			if !slices.ContainsFunc(order, func(h held) bool { return h.outer == name && h.inner == inner }) {
				found = append(found, fmt.Sprintf("%s is not taken under %s any more: run with -update", inner, name))
			}
		}
		if leads(rows, name, name) {
			found = append(found, "the order leads from "+name+" back to itself")
		}
	}
	for _, h := range order {
		if !leads(rows, h.outer, h.inner) {
			found = append(found, fmt.Sprintf("%s: %s is taken under %s, which the table does not allow",
				positions.Position(h.at), h.inner, h.outer))
		}
	}
	return found
}

// rewriteLocks returns the text of the table with today's locks: one of a type that has moved keeps its words, a new
// one gets a row without any, and of the order stands what does not follow from the rest.
func rewriteLocks(text string, names []string, order []held) string {
	was, now := readLocks(text), map[string]lockRow{}
	for _, name := range names {
		row := was[name]
		for _, old := range sortedKeys(was) {
			if row.protects == "" && tail2(old) == tail2(name) {
				row.protects = was[old].protects
			}
		}
		row.inner = nil
		for _, h := range order {
			if h.outer == name {
				row.inner = append(row.inner, h.inner)
			}
		}
		now[name] = row
	}
	for _, name := range names { // what others lead to as well is left out
		row := now[name]
		row.inner = slices.DeleteFunc(slices.Clone(row.inner), func(inner string) bool {
			return slices.ContainsFunc(row.inner, func(over string) bool { return over != inner && leads(now, over, inner) })
		})
		now[name] = row
	}
	var b strings.Builder
	table, orders := false, false
	for line := range strings.Lines(text) {
		_, _, row := lockLine(line)
		_, _, ordered := orderLine(line)
		if ordered = ordered && table; ordered && !orders {
			orders = true
			b.WriteString(orderText(names, now))
		}
		if !row && !ordered {
			b.WriteString(line)
		}
		if strings.HasPrefix(line, "|---") {
			table = true
			for _, name := range names {
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, now[name].protects)
			}
		}
	}
	return b.String()
}

// orderText prints which lock is taken under which, in lines of up to maxLine characters.
func orderText(names []string, rows map[string]lockRow) string {
	var b strings.Builder
	for _, name := range names {
		if len(rows[name].inner) == 0 {
			continue
		}
		fmt.Fprintf(&b, "    %s:\n", name)
		line := "       "
		for _, inner := range rows[name].inner {
			if len(line)+1+len(inner) > maxLine {
				b.WriteString(line + "\n")
				line = "       "
			}
			line += " " + inner
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// tail2 returns the type and field of a lock's name.
func tail2(name string) string {
	parts := strings.Split(path.Base(name), ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}
