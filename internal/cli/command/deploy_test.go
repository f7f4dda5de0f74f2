// Tests of the files in deploy/: what they start the node binary with is a command line and an environment that it
// takes, what they probe is served, and what they say to each other fits.

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/kith-io/kith/internal/cli/env"
)

const deploy = "../../../deploy"

// documents returns all documents of a file of YAML.
func documents(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	file, err := os.Open(filepath.Join(deploy, path))
	require.NoError(t, err)
	defer file.Close()
	for d := yaml.NewDecoder(file); ; {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, path)
		all = append(all, doc)
	}
}

// at walks down into a document by names, and by numbers into its lists.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
		require.NotNil(t, v, "%v", path)
	}
	return v
}

// takes demands that kith run takes a command line and an environment, and knows all names in them.
func takes(t *testing.T, where string, args []string, vars map[string]string) {
	t.Helper()
	_, known, _ := program(t, "config", "--json")
	for name, value := range vars {
		setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "KITH_"), "_", "-"))
		require.Contains(t, known, `"name":"`+setting+`"`, "%s: %s", where, name)
		t.Setenv(name, value)
	}
	require.Equal(t, "run", args[0], where)
	code, _, errs := program(t, append([]string{"config"}, args[1:]...)...)
	require.Equal(t, env.ExitOK, code, "%s: %s", where, errs)
	for name := range vars {
		require.NoError(t, os.Unsetenv(name))
	}
}

func TestDeployCompose(t *testing.T) {
	services := at(t, documents(t, "compose.yaml")[0], "services").(map[string]any)
	require.Len(t, services, 3)
	for name, s := range services {
		env := map[string]string{}
		for k, v := range at(t, s, "environment").(map[string]any) {
			env[k] = fmt.Sprint(v)
		}
		takes(t, name, []string{"run"}, env)
		require.Equal(t, name+":7355", env["KITH_ADVERTISE"])
		require.Contains(t, env["KITH_SEEDS"], env["KITH_ADVERTISE"])
		longer(t, at(t, s, "stop_grace_period").(string))
	}
}

// longer demands that a node is given more time than it takes to leave.
func longer(t *testing.T, grace string) {
	t.Helper()
	d, err := time.ParseDuration(grace)
	require.NoError(t, err)
	var c runCmd
	code, out, _ := program(t, "config")
	require.Equal(t, env.ExitOK, code)
	leave := regexp.MustCompile(`leave-timeout +(\S+)`).FindStringSubmatch(out)
	c.LeaveTimeout, err = time.ParseDuration(leave[1])
	require.NoError(t, err)
	require.Greater(t, d, c.LeaveTimeout)
}

func TestDeployKubernetes(t *testing.T) {
	byKind := map[string]map[string]any{}
	for _, file := range at(t, documents(t, "kubernetes/kustomization.yaml")[0], "resources").([]any) {
		for _, doc := range documents(t, "kubernetes/"+file.(string)) {
			byKind[doc["kind"].(string)] = doc
		}
	}
	set := byKind["StatefulSet"]
	pod := at(t, set, "spec", "template", "spec")
	box := at(t, pod, "containers", 0)
	env := map[string]string{}
	for _, v := range at(t, box, "env").([]any) {
		if value, is := v.(map[string]any)["value"].(string); is {
			env[v.(map[string]any)["name"].(string)] = strings.ReplaceAll(value, "$(POD_NAME)", "kith-1")
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1") // as every pod has them
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	takes(t, "statefulset", []string{at(t, box, "args", 0).(string)}, env)
	require.Equal(t, byKind["Service"]["metadata"].(map[string]any)["name"], at(t, set, "spec", "serviceName"))
	require.Equal(t, env["KITH_EXPECTED"], fmt.Sprint(at(t, set, "spec", "replicas").(int)))
	name, value, _ := strings.Cut(env["KITH_DISCOVERY_SELECTOR"], "=")
	require.Equal(t, value, at(t, set, "spec", "template", "metadata", "labels", name), "a node finds itself")
	require.Equal(t, true, at(t, pod, "automountServiceAccountToken"))
	account := at(t, pod, "serviceAccountName")
	require.Equal(t, account, at(t, byKind["ServiceAccount"], "metadata", "name"))
	require.Equal(t, account, at(t, byKind["RoleBinding"], "subjects", 0, "name"))
	require.Equal(t, at(t, byKind["Role"], "metadata", "name"), at(t, byKind["RoleBinding"], "roleRef", "name"))
	require.Equal(t, []any{"list"}, at(t, byKind["Role"], "rules", 0, "verbs"))
	require.Equal(t, true, at(t, byKind["Service"], "spec", "publishNotReadyAddresses"), "else nobody is found at first")
	longer(t, fmt.Sprintf("%ds", at(t, pod, "terminationGracePeriodSeconds").(int)))
	api, err := os.ReadFile("../../../admin/openapi.json")
	require.NoError(t, err)
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		require.Contains(t, string(api), `"`+at(t, box, probe, "httpGet", "path").(string)+`":`)
	}
	labels := at(t, set, "spec", "template", "metadata", "labels").(map[string]any)
	for _, selector := range []any{at(t, set, "spec", "selector", "matchLabels"),
		at(t, byKind["Service"], "spec", "selector"), at(t, byKind["PodDisruptionBudget"], "spec", "selector", "matchLabels"),
		at(t, byKind["NetworkPolicy"], "spec", "podSelector", "matchLabels")} {
		for k, v := range selector.(map[string]any) {
			require.Equal(t, v, labels[k])
		}
	}
	ports := map[string]int{}
	for _, p := range at(t, box, "ports").([]any) {
		ports[at(t, p, "name").(string)] = at(t, p, "containerPort").(int)
	}
	require.True(t, strings.HasSuffix(env["KITH_LISTEN"], fmt.Sprintf(":%d", ports["kith"])))
	require.True(t, strings.HasSuffix(env["KITH_CONTACT"], fmt.Sprintf(":%d", ports[env["KITH_DISCOVERY_PORT_NAME"]])))
	require.True(t, strings.HasSuffix(env["KITH_ADMIN"], fmt.Sprintf(":%d", ports["admin"])))
}

// The environment that the chart sets is known, and its schema keeps what the chart sets itself out of config.
func TestDeployChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "helm/kith/templates/statefulset.yaml"))
	require.NoError(t, err)
	schema, err := os.ReadFile(filepath.Join(deploy, "helm/kith/values.schema.json"))
	require.NoError(t, err)
	_, known, _ := program(t, "config", "--json")
	names := regexp.MustCompile(`KITH_[A-Z_]+`).FindAllString(string(text), -1)
	require.Greater(t, len(names), 8)
	for _, name := range names {
		setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "KITH_"), "_", "-"))
		if setting == "config" {
			continue
		}
		require.Contains(t, known, `"name":"`+setting+`"`)
		require.Contains(t, string(schema), `"`+setting+`"`)
	}
	values := documents(t, "helm/kith/values.yaml")[0]
	file, err := yaml.Marshal(at(t, values, "config"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kith.yaml")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	code, _, errs := program(t, "config", "--check="+path)
	require.Equal(t, env.ExitOK, code, errs)
	longer(t, fmt.Sprintf("%ds", at(t, values, "terminationGracePeriodSeconds").(int)))
}

func TestDeploySystemd(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "systemd/kith.service"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kith.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: market\n"), 0o600))
	unit := strings.NewReplacer("/etc/kith/kith.yaml", path, "${STATE_DIRECTORY}", t.TempDir()).Replace(string(text))
	line := func(key string) []string {
		found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		require.NotNil(t, found, key)
		return strings.Fields(found[1])
	}
	takes(t, "unit", line("ExecStart")[1:], nil)
	code, _, errs := program(t, line("ExecStartPre")[1:]...)
	require.Equal(t, env.ExitOK, code, errs)
	require.Equal(t, []string{fmt.Sprint(env.ExitRefused), fmt.Sprint(env.ExitStatesLost)},
		line("RestartPreventExitStatus"), "not 2: Go gives it to a process that crashed")
	require.Equal(t, []string{"SIGHUP", "SIGPIPE"}, line("RestartForceExitStatus"), "systemd takes them for a clean end")
	require.Equal(t, []string{"/bin/kill", "-HUP", "$MAINPID"}, line("ExecReload"))
	require.Contains(t, line("RestrictAddressFamilies"), "AF_NETLINK")
	longer(t, line("TimeoutStopSec")[0]+"s")
}

// The drop-in for TLS hands over what its variables name, and these the node takes, together.
func TestDeploySystemdTLS(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "systemd/kith.service.d/tls.conf"))
	require.NoError(t, err)
	credentials, env := t.TempDir(), map[string]string{}
	for _, c := range regexp.MustCompile(`(?m)^LoadCredential=([a-z.]+):/\S+$`).FindAllStringSubmatch(string(text), -1) {
		require.NoError(t, os.WriteFile(filepath.Join(credentials, c[1]), nil, 0o600))
	}
	for _, v := range regexp.MustCompile(`(KITH_[A-Z_]+)=%d/(\S+)`).FindAllStringSubmatch(string(text), -1) {
		env[v[1]] = filepath.Join(credentials, v[2])
		require.FileExists(t, env[v[1]])
	}
	require.Len(t, env, 3)
	takes(t, "tls.conf", []string{"run"}, env)
}

// docs/kubernetes.md: each fragment is in a manifest, and each command is of files, names, values and verbs that there
// are.
func TestDeployPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kubernetes.md")
	require.NoError(t, err)
	var manifests []any
	for _, file := range at(t, documents(t, "kubernetes/kustomization.yaml")[0], "resources").([]any) {
		for _, doc := range documents(t, "kubernetes/"+file.(string)) {
			manifests = append(manifests, doc)
		}
	}
	fragments := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(fragments), 5)
	for _, f := range fragments {
		var part map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(f[1]), &part), f[1])
		require.NotEmpty(t, part)
		require.True(t, somewhere(manifests, part), "in no manifest: %s", f[1])
	}
	require.False(t, somewhere(manifests, map[string]any{"replicas": 4}))
	seen := map[string]bool{}
	commands := regexp.MustCompile("(?m)^    ((?:docker|kubectl|helm) .*)$")
	for _, line := range commands.FindAllStringSubmatch(string(text), -1) {
		seen[strings.Fields(line[1])[0]] = true
		pageCommand(t, manifests, strings.Fields(line[1]))
	}
	require.Len(t, seen, 3)
}

// somewhere reports whether part is within v, at any depth.
func somewhere(v any, part map[string]any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return somewhere(x, part) })
	case map[string]any:
		if covers(v, part) {
			return true
		}
		for _, x := range v { // order: any of them
			if somewhere(x, part) {
				return true
			}
		}
	}
	return false
}

// covers reports whether v has all that part has.
func covers(v, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		m, is := v.(map[string]any)
		for k, x := range part { // order: all of them
			is = is && covers(m[k], x)
		}
		return is
	case []any:
		list, is := v.([]any)
		for _, x := range part {
			is = is && slices.ContainsFunc(list, func(y any) bool { return covers(y, x) })
		}
		return is
	}
	return fmt.Sprint(v) == fmt.Sprint(part)
}

// pageCommand holds the words of a command against what there is.
func pageCommand(t *testing.T, manifests []any, words []string) {
	t.Helper()
	line := strings.Join(words, " ")
	values := documents(t, "helm/kith/values.yaml")[0]
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "deploy/"):
			file := map[string]string{"kubectl": "kustomization.yaml", "helm": "Chart.yaml"}[words[0]]
			require.FileExists(t, filepath.Join(deploy, "..", w, file), line)
		case strings.HasPrefix(w, "statefulset/"):
			require.True(t, somewhere(manifests, map[string]any{"kind": "StatefulSet",
				"metadata": map[string]any{"name": strings.TrimPrefix(w, "statefulset/")}}), line)
		case regexp.MustCompile(`^kith-\d$`).MatchString(w):
			require.Less(t, w, "kith-3", line)
		case regexp.MustCompile(`^\d+:\d+$`).MatchString(w):
			_, port, _ := strings.Cut(w, ":")
			n, err := strconv.Atoi(port)
			require.NoError(t, err)
			require.True(t, somewhere(manifests, map[string]any{"containerPort": n}), line)
		case w == "--set":
			var in any = values
			name, _, _ := strings.Cut(words[i+1], "=")
			for _, step := range strings.Split(name, ".") {
				m, is := in.(map[string]any)
				require.True(t, is, line)
				require.Contains(t, m, step, line)
				in = m[step]
			}
		case w == "--" && words[i+1] == "kith":
			code, _, errs := program(t, append(slices.Clone(words[i+2:]), "--help")...)
			require.Equal(t, env.ExitOK, code, "%s: %s", line, errs)
		}
	}
}
