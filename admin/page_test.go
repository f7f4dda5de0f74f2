// Tests of the page as files: what a browser is let do with it, and that nothing in it is from another host.

package admin

import (
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page and each of its files come with their type, under a policy that lets nothing else in, and are fetched again
// only when they have changed.
func TestPageFiles(t *testing.T) {
	_, s := start(t, Config{})
	names, err := fs.Glob(pageFiles, "page/*")
	require.NoError(t, err)
	require.Greater(t, len(names), 8)
	for _, name := range names {
		path := "/" + name
		if name == "page/index.html" {
			path = "/"
		}
		want, err := pageFiles.ReadFile(name)
		require.NoError(t, err)
		status, body, head := call(t, s, "GET", path, "")
		require.Equal(t, 200, status, path)
		require.Equal(t, string(want), string(body))
		require.NotEmpty(t, head.Get("Content-Type"), path)
		require.Equal(t, pagePolicy, head.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", head.Get("X-Content-Type-Options"))

		q, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String()+path, nil)
		require.NoError(t, err)
		q.Header.Set("If-None-Match", head.Get("ETag"))
		again, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		require.NoError(t, again.Body.Close())
		require.Equal(t, 304, again.StatusCode)
	}
	status, _, _ := call(t, s, "POST", "/", "")
	require.Equal(t, 405, status)
}

// The policy allows no inline script, no evaluated one and no other host.
func TestPagePolicy(t *testing.T) {
	require.True(t, strings.HasPrefix(pagePolicy, "default-src 'none';"))
	document, err := pageFiles.ReadFile("page/index.html")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(document), "<script>"), "the policy lets in one")
	for _, bad := range []string{"unsafe", "http:", "https:", "*", "data:", "blob:"} {
		require.NotContains(t, pagePolicy, bad)
	}
	for _, kept := range []string{"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		require.Contains(t, pagePolicy, kept)
	}
}

// No file of ours has a handler or a style in its markup, builds markup out of text, evaluates text, or names another
// host: what nodes are called cannot become part of the page (the browser's test tries it).
func TestPageBuildsNoMarkup(t *testing.T) {
	names, err := fs.Glob(pageFiles, "page/*")
	require.NoError(t, err)
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|` +
		`setTimeout\("|javascript:|\son[a-z]+="|\sstyle="|https?://|@import|url\(`)
	for _, name := range names {
		if strings.HasPrefix(name, "page/uplot") {
			continue
		}
		body, err := pageFiles.ReadFile(name)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "")
		text = strings.Replace(text, docsAt, "", 1) // a reader may follow it, the page fetches nothing from there
		require.Empty(t, bad.FindString(text), name)
	}
	require.NotEmpty(t, bad.FindString(`<p onclick="x">`))
}

// docsAt is where the page's links to the documentation lead.
const docsAt = "https://github.com/kith-io/kith/blob/main/docs/"

// What to do next is linked: each page and heading that is named is there (OPS-1).
func TestPageLinksToDocumentation(t *testing.T) {
	model, err := pageFiles.ReadFile("page/model.js")
	require.NoError(t, err)
	links := regexp.MustCompile(`docs\("([^"#]+)#?([^"]*)"\)`).FindAllStringSubmatch(string(model), -1)
	require.Greater(t, len(links), 5)
	for _, l := range links {
		text, err := os.ReadFile("../docs/" + l[1])
		require.NoError(t, err)
		found := l[2] == ""
		for _, line := range strings.Split(string(text), "\n") {
			if heading, is := strings.CutPrefix(line, "## "); is {
				slug := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), "")
				found = found || strings.ReplaceAll(slug, " ", "-") == l[2]
			}
		}
		require.True(t, found, "docs/%s has no heading #%s", l[1], l[2])
	}
}
