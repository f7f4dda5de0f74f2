// Mistakes that are planted into the real source, one at a time: the storm has to find each (DUR-1).

package durables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

// mistake is one edit: Old, which stands once in the file In, becomes New.
type mistake struct {
	Name, In, Old, New string
	Rules              string // one of which the storm says is broken, with spaces in between
}

// mistakes are all of them; docs/contributing/storms.md lists them.
var mistakes = []mistake{
	{"reply-before-commit", "durable/outbox.go", "if !e.puts(&w, out, l, answers(c, answer)) {",
		"a := answers(c, answer)\n\ta.leaves()\n\tif !e.puts(&w, out, l, reply{}) {", "uncommitted lost"},
	{"read-before-commit", "durable/keeper.go", "if p := h.last; p != nil && !p.known {",
		"if p := h.last; p != nil && !p.known && p.bytes < 0 {", "uncommitted"},
	{"commit-without-fence", "store/memory.go",
		"Writes: w}, func(at *memoryShard) error {\n\t\tif err := at.held(f); err != nil {",
		"Writes: w}, func(at *memoryShard) error {\n\t\tif err := at.held(f); err != nil && f.IsZero() {",
		"stale stopped lost"},
	{"claim-overtakes-commit", "store/memory.go",
		"\tcase 1:\n\t\treturn ErrFenced\n\tcase -1:\n\t\treturn ErrStoreWentBack",
		"\tcase 1:\n\t\tif f == at.before {\n\t\t\treturn nil\n\t\t}\n\t\treturn ErrFenced\n" +
			"\tcase -1:\n\t\treturn ErrStoreWentBack",
		"stale"},
	{"marks-beside-state", "durable/outbox.go", "w.Marks = []store.Mark{x.mark}", "_ = w", "twice"},
	{"marks-of-one-message", "durable/keeper.go", "\t*w = all\n", "\t_ = all\n", "twice"},
	{"numbers-restart", "durable/keeper.go", "return v * perVersion", "return 0 * v", "lost settle"},
	{"sent-twice-under-a-new-number", "durable/instance.go", "\te.last = out[len(out)-1].number\n",
		"\tfor _, p := range out {\n\t\tp.number++\n\t}\n\te.last = out[len(out)-1].number\n", "twice lost"},
	{"gap-is-taken", "durable/once.go", "case n.before > seen.Number, n.before == seen.Number && n.before > 0 && void:",
		"case n.before > seen.Number && n.number == 0:", "lost order refunded"},
	{"hand-over-of-uncommitted-state", "durable/instance.go", "return e.k.wait(c.Context(), last) && e.k.died() == nil",
		"return e.k.died() == nil || last == nil", "uncommitted stopped lost"},
	{"reminder-early", "durable/remind.go", "len(e.reminders) == 0 || e.reminders[0].at > now {",
		"len(e.reminders) == 0 || e.reminders[0].at > now+2000 {", "early"},
	{"outbox-goes-with-its-record", "durable/outbox.go", "w.Outbox = appendOutbox(nil, w.Delete, out); len(out) > 0 {",
		"w.Outbox = appendOutbox(nil, w.Delete, out); len(out) > 0 && e.t.Schema > 9 {", "lost settle"},
	{"refund-without-proof", "durable/outbox.go", "MayHaveRun: p.ended != outcomeVoid,",
		"MayHaveRun: p.ended == outcomeHandled,", "refunded"},
	{"panic-leaves-its-state", "durable/once.go",
		"\te.live = nil // unless all goes well: a panic leaves nothing of the message\n",
		"\te.live = s\n", "refused twice uncommitted strange sum order lost"},
	{"versions-restart", "durable/keeper.go", "w.Version = k.floor + 1", "w.Version = 1", "stopped settle"},
	{"newer-schema-is-read", "durable/instance.go", "case r.Schema > e.t.Schema:\n", "case r.Schema > e.t.Schema+9:\n",
		"schema sum lost strange"},
	{"key-without-its-answer", "durable/once.go", "x.mark.Value = append(x.mark.Value, answer...)",
		"x.mark.Value = x.mark.Value[:digest:digest]", "twice"},
	{"went-back-is-an-unknown", "durable/keeper.go",
		"case errors.Is(err, store.ErrStoreWentBack), errors.Is(err, store.ErrVersion):",
		"case errors.Is(err, store.ErrStoreWentBack):", "went-back settle"},
}

const (
	mostSeeds = 60 // that may be used to find a mistake
	atATime   = 10
)

// TestMistakesCanBePlanted: what a mistake takes away stands in the source, once.
func TestMistakesCanBePlanted(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mistakes {
		require.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		plant(t, &m)
	}
}

const root = "../../.."

// plant returns the file with the mistake.
func plant(t *testing.T, m *mistake) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.In)))
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte(m.Old)), "%s: %q", m.Name, m.Old)
	return bytes.Replace(text, []byte(m.Old), []byte(m.New), 1)
}

// TestLongPlantedMistakes: each is found within sixty seeds.
func TestLongPlantedMistakes(t *testing.T) {
	long.Test(t)
	for _, m := range mistakes {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			file, lab := filepath.Join(dir, filepath.Base(m.In)), filepath.Join(dir, "lab")
			real, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.In)))
			require.NoError(t, err)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{real: file}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, plant(t, &m), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
			build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+filepath.Join(dir, "overlay"), "-o", lab,
				"./cmd/lab")
			build.Dir = root
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			rule, seed := hunt(t, lab, strings.Fields(m.Rules))
			t.Logf("broken: %s, by seed %d", rule, seed)
		})
	}
}

// hunt runs storms until one breaks one of these rules.
func hunt(t *testing.T, lab string, rules []string) (rule string, seed uint64) {
	t.Helper()
	var others []string
	for first := 1; first <= mostSeeds; first += atATime {
		cmd := exec.CommandContext(t.Context(), lab, "storm-durable", "--seeds=10", "--json", fmt.Sprint("--first=", first),
			"--trace-dir="+filepath.Dir(lab))
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil {
			require.ErrorAs(t, err, &exit)
		}
		line, ok := bytes.CutPrefix(out, []byte("storm_durable "))
		require.True(t, ok, "%s", out)
		var r Result
		require.NoError(t, errors.Join(json.Unmarshal(line, &r)))
		for _, f := range r.Failures {
			for _, v := range f.Violations {
				if slices.Contains(rules, v.Rule) {
					return v.Rule, f.Seed
				}
				others = append(others, v.String())
			}
		}
	}
	t.Fatalf("not found by %d seeds, which broke: %s", mostSeeds, others[:min(len(others), 9)])
	return "", 0
}
