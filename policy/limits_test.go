package policy_test

import (
	"testing"
	"time"

	"codespace/policy"
)

// TestLimitsHoldAtTheirBounds tries each limit at both bounds and one beyond.
func TestLimitsHoldAtTheirBounds(t *testing.T) {
	cases := []struct {
		key, below, least, most, above string
		allowed                        string
	}{
		{"wall", `"999us"`, `"1ms"`, `"720h"`, `"720h0m0.000000001s"`, `from "1ms" to "720h", or "0" for no limit`},
		{"grace", `"-1ns"`, `"0"`, `"10m"`, `"10m1ns"`, `from "0s" to "10m"`},
		{"memory", `"16777215B"`, `"16MiB"`, `"16TiB"`, `"17592186044417B"`, `from "16MiB" to "16TiB"`},
		{"pids", `0`, `1`, `1_000_000`, `1000001`, `from 1 to 1000000`},
		{"processes", `0`, `1`, `1024`, `1025`, `from 1 to 1024`},
		{"output", `"4095B"`, `"4KiB"`, `"1GiB"`, `"1073741825B"`, `from "4KiB" to "1GiB"`},
		{"open_files", `15`, `16`, `0x100000`, `1048577`, `from 16 to 1048576`},
		{"file_size", `"3KiB"`, `"4096B"`, `"1TiB"`, `"1025GiB"`, `from "4KiB" to "1TiB"`},
	}
	for _, c := range cases {
		t.Run(c.key, func(t *testing.T) {
			h := newHost(t)
			for _, inside := range []string{c.least, c.most} {
				h.load(minimal + "limits." + c.key + " = " + inside)
			}
			for _, outside := range []string{c.below, c.above} {
				says(t, h.refuse(minimal+"limits."+c.key+" = ▲"+outside), "found ", c.allowed)
			}
		})
	}
}

func TestQuantitiesAreWrittenInOneWay(t *testing.T) {
	h := newHost(t)
	for _, written := range []string{
		`"2GB"`, `"2G"`, `"2 GiB"`, `"2gib"`, `"2.5GiB"`, `"-2GiB"`, `"+2GiB"`, `"GiB"`, `"2"`, `""`, `" 2GiB"`, `"2GiB "`,
		`"0x10MiB"`, `"9223372036854775808B"`, `"99999999999999999999TiB"`, `"8388608TiB"`, `2147483648`, `true`,
	} {
		says(t, h.refuse(minimal+"limits.memory = ▲"+written), "B, KiB, MiB, GiB or TiB", "found ")
	}
	for _, written := range []string{`"10"`, `"ten minutes"`, `""`, `"-1s"`, `10`, `0`, `false`, `"1d"`} {
		says(t, h.refuse(minimal+"limits.wall = ▲"+written), "a duration in quotes")
	}
	for _, written := range []string{`"512"`, `512.0`, `-1`} {
		says(t, h.refuse(minimal+"limits.pids = ▲"+written), "a whole number without quotes")
	}
}

func TestWallZeroMeansNoLimit(t *testing.T) {
	h := newHost(t)
	for written, want := range map[string]time.Duration{`"0"`: 0, `"0s"`: 0, `"1h30m"`: 90 * time.Minute} {
		site, _ := h.load(minimal + "limits.wall = " + written).Workspace("site")
		equal(t, site.Limits.Wall, want)
	}
}

func TestEnforcementStandsAmongTheLimits(t *testing.T) {
	h := newHost(t)
	site, _ := h.load(minimal + "limits.enforcement = \"best-effort\"").Workspace("site")
	equal(t, site.Enforcement, policy.BestEffort)
}
