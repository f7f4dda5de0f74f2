// Verbs: all machines of a node have the same ones, and Drain does nothing but hand over.

package rules

import (
	"go/ast"
	"go/printer"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machines are the types that are stepped, by room. internal/base/contract says what their verbs promise.
var machines = map[string]string{"membership": "Machine", "sbr": "Machine", "shard": "Machine", "courier": "Machine",
	"node": "Node", "internal/core/replica": "Machine", "internal/core/watch": "Machine"}

// frameless are the packages with a machine that gets no frames, so that it has no Handle.
var frameless = []string{"sbr"}

// verbs are the types of parameters and results of each verb. A node takes the commands of all its machines.
var verbs = map[string]string{
	"Tick":   "(time.Duration)",
	"Handle": "(time.Duration, time.Duration, peer.ID, wire.Kind, []byte) (error)",
	"Do":     "(time.Duration, Command) (error)",
	"Next":   "() (time.Duration, bool)",
	"Drain":  "(*Effects)",
}

// handing are the methods that a Drain may call: they only read what steps have gathered.
var handing = map[string]bool{"Peek": true, "emptied": true}

// stepped judges the machine of one file: the signatures of its verbs, and what Drain calls.
func stepped(s *source) []finding {
	if s.tests {
		return nil
	}
	var found []finding
	for _, decl := range s.file.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Recv == nil || machines[s.pkgName] == "" || receiver(d) != machines[s.pkgName] {
			continue
		}
		want := verbs[d.Name.Name]
		if s.pkgName == "node" {
			want = strings.Replace(want, "Command", "any", 1)
		}
		if got := signature(s, d.Type); want != "" && got != want {
			found = append(found, s.at(d.Pos(), "%s is %s, the verb of all machines is %s", d.Name.Name, got, want))
		}
		if d.Name.Name == "Drain" {
			found = append(found, onlyHandsOver(s, d.Body)...)
		}
	}
	return found
}

// onlyHandsOver judges the body of a Drain.
func onlyHandsOver(s *source, body *ast.BlockStmt) []finding {
	var found []finding
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && !handing[f.Sel.Name] {
				found = append(found, s.at(n.Pos(), "Drain calls %s: what is to be done belongs into the verbs", f.Sel.Name))
			}
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt:
			found = append(found, s.at(n.Pos(), "Drain decides something: that belongs into the verbs"))
		}
		return true
	})
	return found
}

// signature prints the types of a function, without names.
func signature(s *source, f *ast.FuncType) string {
	list := func(fields *ast.FieldList) string {
		var names []string
		for _, field := range fields.List {
			var b strings.Builder
			_ = printer.Fprint(&b, s.fset, field.Type)
			for range max(len(field.Names), 1) {
				names = append(names, b.String())
			}
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	out := list(f.Params)
	if f.Results != nil {
		out += " " + list(f.Results)
	}
	return out
}

// TestMachinesHaveTheSameVerbs holds the contract of all machines: the same verbs, a Drain that hands over (CARD-2).
func TestMachinesHaveTheSameVerbs(t *testing.T) {
	judge(t, stepped)
	all, err := sources()
	require.NoError(t, err)
	has := map[string]bool{}
	for _, s := range all {
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && !s.tests && d.Recv != nil && receiver(d) == machines[s.pkgName] {
				has[s.pkgName+" "+d.Name.Name] = true
			}
		}
	}
	for pkgName := range machines {
		for verb := range verbs {
			require.Equal(t, verb != "Handle" || pkgName != frameless[0], has[pkgName+" "+verb], "%s of %s", verb, pkgName)
		}
	}
}

// TestVerbsRule feeds the rule machines that break the contract.
func TestVerbsRule(t *testing.T) {
	for _, text := range []string{
		"func (m *Machine) Tick(now time.Duration) []int { return nil }",
		"func (m *Machine) Next() time.Duration { return 0 }",
		"func (m *Machine) Do(now time.Duration, c any) error { return nil }",
		"func (m *Machine) Drain() Effects { return m.out }",
		"func (m *Machine) Drain(out *Effects) { m.decide(); *out = m.out }",
		"func (m *Machine) Drain(out *Effects) { if m.stale { *out = m.out } }",
	} {
		require.NotEmpty(t, judged(t, stepped, "shard/x.go", "package shard\n"+text+"\n"), text)
		require.Empty(t, judged(t, stepped, "flow/x.go", "package flow\n"+text+"\n"), text)
	}
	fine := "func (m *Machine) Drain(out *Effects) { *out, m.out = m.Peek(), Effects{Mail: out.Mail[:0]} }"
	require.Empty(t, judged(t, stepped, "shard/x.go", "package shard\n"+fine+"\n"))
}
