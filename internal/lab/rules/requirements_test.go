// The requirement list: docs/contributing/requirements.md names, for every id issued so far, tests that exist and that
// cite it.

package rules

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	requirementID  = regexp.MustCompile(`\b(?:CARD|MEM|GOS|FD|JOIN|BOOT|SHD|PRT|DYN|ACC|AVL|SEC|API|REP)-[0-9]+\b`)
	requirementRow = regexp.MustCompile(`^\| ([A-Z]+-[0-9]+) \| (.+) \| (.+) \|$`)
	pinReference   = regexp.MustCompile("`([^`]+)`")
)

// requirement is one row of the list: an id, what it asks for, and the tests that pin it, each as `folder TestName` or
// as a script's path.
type requirement struct {
	id   string
	pins []string
}

// requirements reads the rows out of the page's text, and what is wrong with their form.
func requirements(page string) (rows []requirement, faults []string) {
	absent := false // the table at the end has no tests
	for item := range strings.Lines(page) {
		item = strings.TrimRight(item, "\n")
		absent = absent || item == "## Absent"
		row := requirementRow.FindStringSubmatch(item)
		if row == nil || absent {
			if id := requirementID.FindString(item); !absent && id != "" && strings.HasPrefix(item, "| "+id) {
				faults = append(faults, fmt.Sprintf("%s: not id, text and tests", id))
			}
			continue
		}
		r := requirement{id: row[1]}
		for _, pin := range pinReference.FindAllStringSubmatch(row[3], -1) {
			r.pins = append(r.pins, pin[1])
		}
		if len(r.pins) == 0 {
			faults = append(faults, fmt.Sprintf("%s has no test", r.id))
		}
		if slices.ContainsFunc(rows, func(o requirement) bool { return o.id == r.id }) {
			faults = append(faults, fmt.Sprintf("%s stands there twice", r.id))
		}
		rows = append(rows, r)
	}
	return rows, faults
}

// citations maps each test (`folder TestName`, or the path of a script) to the text in which it may cite ids: its own
// comment and the opening comment of its file, or the whole script.
func citations(t *testing.T) map[string]string {
	t.Helper()
	all, err := sources()
	require.NoError(t, err)
	cited := map[string]string{}
	for _, s := range all {
		if !s.tests {
			continue
		}
		opening := ""
		if len(s.file.Comments) > 0 && s.file.Comments[0].Pos() < s.file.Package {
			opening = s.file.Comments[0].Text()
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			cited[short(path.Dir(s.path))+" "+f.Name.Name] = opening + f.Doc.Text()
		}
	}
	scripts, err := filepath.Glob(filepath.Join(repository, "sim", "testdata", "*.txt"))
	require.NoError(t, err)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		cited["sim/testdata/"+filepath.Base(name)] = string(text)
	}
	return cited
}

// unpinned returns what is wrong with the rows: a test that is not there, or that does not cite the row's id.
func unpinned(rows []requirement, cited map[string]string) (faults []string) {
	for _, r := range rows {
		for _, pin := range r.pins {
			text, ok := cited[pin]
			switch {
			case !ok:
				faults = append(faults, fmt.Sprintf("%s: there is no test %q", r.id, pin))
			case !slices.Contains(requirementID.FindAllString(text, -1), r.id):
				faults = append(faults, fmt.Sprintf("%s: test %q does not cite it", r.id, pin))
			}
		}
	}
	return faults
}

// TestEveryRequirementIsPinned holds docs/contributing/requirements.md: each id has at least one test, each test named
// is there and cites the id, and every id that some test cites has a row.
func TestEveryRequirementIsPinned(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "contributing", "requirements.md"))
	require.NoError(t, err)
	rows, faults := requirements(string(page))
	require.Greater(t, len(rows), 40, "the page holds next to no rows: its form has changed")
	cited := citations(t)
	faults = append(faults, unpinned(rows, cited)...)
	for pin, text := range cited {
		for _, id := range requirementID.FindAllString(text, -1) {
			if !slices.ContainsFunc(rows, func(r requirement) bool { return r.id == id }) {
				faults = append(faults, fmt.Sprintf("%s: cited by %q, has no row", id, pin))
			}
		}
	}
	slices.Sort(faults)
	require.Empty(t, slices.Compact(faults), "%s", strings.Join(faults, "\n"))
}

// promisedFolders are the folders of the packages that embedders may rely on; "." is the root alone.
var promisedFolders = strings.Fields(`. cluster entity peer route shutdown stats discovery bootstrap admin metrics
	latency sim fd shard/strategy otel codec`)

// namedIDs returns the requirements that comments of a promised package name: readers of these do not have the list.
func namedIDs(s *source) (found []finding) {
	folder := path.Dir(s.path)
	if s.tests || !slices.ContainsFunc(promisedFolders, func(p string) bool {
		return folder == p || p != "." && strings.HasPrefix(folder+"/", p+"/")
	}) {
		return nil
	}
	for _, group := range s.file.Comments {
		if id := requirementID.FindString(group.Text()); id != "" {
			found = append(found, s.at(group.Pos(), "%s: ids of requirements stay in tests and docs/contributing", id))
		}
	}
	return found
}

// TestAPICommentsNameNoIDs: who embeds kith reads comments that need no list of ours (CARD-5).
func TestAPICommentsNameNoIDs(t *testing.T) {
	judge(t, namedIDs)
	s, err := parse("fd/ring.go", []byte("// Ring (FD-2).\n\npackage fd\n"))
	require.NoError(t, err)
	require.Len(t, namedIDs(s), 1)
	s, err = parse("internal/x/x.go", []byte("// X (FD-2).\n\npackage x\n"))
	require.NoError(t, err)
	require.Empty(t, namedIDs(s))
}

// TestRequirementRules feeds the rule a page with every fault that it knows.
func TestRequirementRules(t *testing.T) {
	rows, faults := requirements("| MEM-1 | a | `fd TestA`, `fd TestB` |\n| MEM-2 | b | none |\n" +
		"| MEM-1 | c | `fd TestA` |\n| MEM-3 | d |\n\n| other | e |\n## Absent\n| PRT-1 | f | nothing |\n")
	require.Len(t, rows, 3)
	require.Len(t, faults, 3, "%v", faults)
	require.Equal(t, []string{`MEM-1: there is no test "fd TestB"`},
		unpinned(rows[:1], map[string]string{"fd TestA": "identity (MEM-1)"}))
	require.Equal(t, []string{`MEM-1: test "fd TestA" does not cite it`},
		unpinned([]requirement{{"MEM-1", []string{"fd TestA"}}}, map[string]string{"fd TestA": "MEM-12"}))
}
