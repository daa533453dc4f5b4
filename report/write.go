package report

import "errors"

// Write writes the page to path, as a whole or not at all.
func Write(path string, p Page) error {
	return errors.New("report: not written yet")
}
