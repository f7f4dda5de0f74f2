// Package browser has no code: its tests look at the dashboard in a headless browser, beside real node processes. They
// need chromium (Debian: apt-get install chromium). It is a module of its own, so that nobody who uses kith gets what
// drives the browser.
package browser
