// The test that NOTICE names the authors of what is linked into the programs, and under which licences.

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked returns the modules of others that the programs link packages of, and the folders where their sources lie.
func linked(t *testing.T) map[string]string {
	t.Helper()
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}{{end}}{{end}}"
	cmd := exec.Command("go", "list", "-deps", "-f", format, "./cmd/kith", "./cmd/lab", "./cmd/loadgen")
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	require.NoError(t, err)
	all := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		if name, dir, is := strings.Cut(line, "|"); is {
			all[name] = dir
		}
	}
	require.Greater(t, len(all), 10)
	return all
}

// texts of licences and notices that a module comes with.
func textsOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name, _, _ := strings.Cut(strings.ToUpper(e.Name()), ".")
		if !e.IsDir() && slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE"}, name) {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			all = append(all, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	return all
}

// embedded is the name and version of what draws the dashboard's charts, which no module brings, and its licence.
func embedded(t *testing.T) (name, licence string) {
	t.Helper()
	script, err := os.ReadFile("../../../admin/page/uplot.js")
	require.NoError(t, err)
	_, rest, is := strings.Cut(string(script), "https://github.com/leeoniya/uPlot (")
	require.True(t, is)
	version, _, _ := strings.Cut(rest, ")")
	text, err := os.ReadFile("../../../admin/page/uplot-license.txt")
	require.NoError(t, err)
	return "github.com/leeoniya/uPlot " + version, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
}

// NOTICE has the licence of everything that is linked or embedded, and of nothing else.
func TestNotice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOTICE is of the programs as they are built for Linux")
	}
	modules := linked(t)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	modules["the Go runtime and standard library"] = strings.TrimSpace(string(root))
	with := map[string][]string{} // text to the modules that come with it
	for name, dir := range modules {
		texts := textsOf(t, dir)
		require.NotEmpty(t, texts, "%s has no licence", name)
		for _, text := range texts {
			with[text] = append(with[text], name)
		}
	}
	name, text := embedded(t)
	with[text] = append(with[text], name)
	var parts []string
	for text, names := range with {
		slices.Sort(names)
		parts = append(parts, strings.Join(names, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	const rule = "\n--------------------------------------------------------------------------------\n"
	want := "kith\n\nLicensed under the Apache License, Version 2.0: see LICENSE. The programs kith and loadgen, built\n" +
		"for Linux, hold the work of others, whose licences and notices follow. This file is written by\n" +
		"go test ./internal/cli/command -run TestNotice -update\n" + rule + strings.Join(parts, rule)
	const path = "../../../NOTICE"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./internal/cli/command -run TestNotice -update")
}
