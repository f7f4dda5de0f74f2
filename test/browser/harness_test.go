// The harness: a built kith, a headless browser, and what a page may not do.

package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var kith string // the program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kith-page-")
	if err != nil {
		panic(err)
	}
	kith = filepath.Join(dir, "kith")
	build := exec.Command("go", "build", "-o", kith, "./cmd/kith")
	build.Dir, build.Stderr = "../..", os.Stderr
	code := 1
	if err := build.Run(); err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// patience is how long something may take to show: a killed node's shards wait for the takeover time.
const patience = 90 * time.Second

// spawn starts kith and returns what a line of its output says, by the first group of the pattern.
func spawn(t *testing.T, pattern string, args ...string) (cmd *exec.Cmd, found string) {
	t.Helper()
	return spawnAs(t, pattern, append([]string{kith}, args...)...)
}

func spawnAs(t *testing.T, pattern string, args ...string) (cmd *exec.Cmd, found string) {
	t.Helper()
	cmd = exec.Command(args[0], args[1:]...)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // of its own, so that its children end with it
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	is, lines := regexp.MustCompile(pattern), bufio.NewScanner(r)
	for lines.Scan() {
		if m := is.FindStringSubmatch(lines.Text()); m != nil {
			go func() { // the rest is read so that it can be written
				for lines.Scan() {
				}
			}()
			return cmd, m[1]
		}
	}
	t.Fatalf("%v: no line with %q", args, pattern)
	return nil, ""
}

// tab is one page in a browser of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// watchdog notes in the page what must not happen: errors, refused scripts and styles. A reload would lose the mark.
const watchdog = `window.faults = []; window.mark = 1;
addEventListener("error", (e) => faults.push("error: " + e.message));
addEventListener("unhandledrejection", (e) => faults.push("rejection: " + e.reason));
addEventListener("securitypolicyviolation", (e) => faults.push("policy: " + e.violatedDirective + " " + e.blockedURI));
for (const k of ["error", "warn"]) { const old = console[k]; console[k] = (...a) => { faults.push(k + ": " + a.join(" ")); old(...a); }; }`

// open opens an address in a window of a size.
func open(t *testing.T, address string, width, height int64) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t, ctx}
	do(b, chromedp.EmulateViewport(width, height))
	do(b, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: watchdog})
		return chromedp.Void{}, err
	})
	do(b, chromedp.Navigate(address))
	return b
}

func do[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	require.NoError(b.t, err)
	return v
}

// js evaluates an expression.
func js[T any](b *tab, expression string, args ...any) T {
	b.t.Helper()
	return do(b, chromedp.Evaluate[T](fmt.Sprintf(expression, args...)))
}

// until waits until an expression is true.
func (b *tab) until(expression string, args ...any) {
	b.t.Helper()
	what := fmt.Sprintf(expression, args...)
	var last error // a page that loads itself again answers nothing meanwhile
	if !eventually(func() (is bool) {
		is, last = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+what+")"))
		return last == nil && is
	}) {
		require.NoError(b.t, last)
		b.picture("failed.png")
		require.Fail(b.t, "it never shows", "%s\n%s\n%v\n%v", what, js[string](b, "document.body.innerText"),
			js[[]string](b, "window.faults || []"), js[[]string](b, loads))
	}
}

// loads are the parts of the page, and how each was answered.
const loads = `performance.getEntriesByType("resource").map((e) => e.name + " " + e.responseStatus)`

func eventually(is func() bool) bool {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for over := time.After(patience); ; {
		if is() {
			return true
		}
		select {
		case <-every.C:
		case <-over:
			return false
		}
	}
}

// media sets a feature that styles ask for.
func (b *tab) media(name, value string) {
	b.t.Helper()
	do(b, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
		return chromedp.Void{}, err
	})
}

// resize gives the window another width.
func (b *tab) resize(width int64) {
	b.t.Helper()
	do(b, chromedp.EmulateViewport(width, 900))
	b.until("innerWidth === %d", width)
}

// picture keeps a screenshot in the directory that KITH_PAGE_PICTURES names, if it names one.
func (b *tab) picture(name string) {
	b.t.Helper()
	if dir := os.Getenv("KITH_PAGE_PICTURES"); dir != "" {
		require.NoError(b.t, os.MkdirAll(dir, 0o755))
		png := do(b, chromedp.FullScreenshot(100))
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), png, 0o644))
	}
}

// clean demands that nothing went wrong in the page, and that it is the one that was opened.
func (b *tab) clean() {
	b.t.Helper()
	require.Equal(b.t, 1, js[int](b, "window.mark"))
	require.Empty(b.t, js[[]string](b, "window.faults"))
}

// ring is the state of a node in the ring of members, by its label.
func ring(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#ring .node")].find((n) => n.getAttribute("aria-label").startsWith(%q))`,
		name+":")
}

// hosted is how many shards a node has, as the page says; -1 where it does not.
func hosted(name string) string {
	return fmt.Sprintf(`(([...document.querySelectorAll("#shards .row:not(.unsure)")].map((r) => r.innerText.split(/\s+/))`+
		`.find((w) => w[1] === %q) || [0, 0, -1])[2] | 0)`, name)
}
