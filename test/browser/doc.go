// Package browser has no code: its tests look at the dashboard in a headless browser, beside real node processes. They
// need chromium (Debian: apt-get install chromium). It is a module of its own, so that users of kith do not get what
// drives the browser.
package browser
