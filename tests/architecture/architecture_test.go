package architecture_test

import (
	"testing"

	"codespace/tests/architecture"
)

const root = "../.."

func TestSource(t *testing.T) {
	report(t, architecture.Source)
}

func TestLinks(t *testing.T) {
	report(t, architecture.Links)
}

func report(t *testing.T, check func(string) ([]architecture.Violation, error)) {
	t.Helper()
	found, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}
