package line_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The largest patch is taken; one byte more is not.
func TestPatchOfTheLargestSize(t *testing.T) {
	dir := workspace(t)
	s := start(t, dir)
	const most = 8 << 20
	sized := func(name string, size int) string {
		empty := around("*** Add File: " + name + "\n+\n")
		return strings.Replace(empty, "\n+\n", "\n+"+strings.Repeat("x", size-len(empty))+"\n", 1)
	}
	s.patch(sized("over", most+1), nil).refused(t, "INVALID_PATCH").wants(t, fields{"operation_id": nil})
	s.patch(sized("full", most), nil).applied(t)
	if got := len(contents(t, filepath.Join(dir, "full"))); got < most-100 {
		t.Errorf("%d bytes were written", got)
	}
}
