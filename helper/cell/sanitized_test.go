package cell_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codespace/sandbox/message"
	"codespace/tests/need"
)

// sanitized builds C files of this directory with the address and undefined
// behaviour sanitizers. Linked statically the two share one log.
func sanitized(t *testing.T, files ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sanitized")
	args := strings.Fields("-fsanitize=address,undefined -fno-sanitize-recover=all -static-libasan -static-libubsan -g -O1 -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE -o " + binary)
	if out, err := exec.Command(need.Command(t, "gcc"), append(args, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("cannot build %v: %v\n%s", files, err, out)
	}
	return binary
}

// seeds are valid messages as the Go side writes them, each behind its length.
func seeds() []byte {
	small := goodConfig(message.TagProgram)
	small.Bytes(message.TagProgram, make([]byte, 8)).Bytes(message.TagProgram, make([]byte, 64))
	var all []byte
	for _, m := range []*message.Message{
		goodLaunch(1), goodLaunch(3), goodLaunch(40), new(message.Message{Kind: message.KindLaunch}).Uint64(message.TagBody, 70000), small, small,
	} {
		b := m.Encode()
		all = binary.NativeEndian.AppendUint32(all, uint32(len(b)))
		all = append(all, b...)
	}
	return all
}

// The parsers of the C side under the sanitizers: a million messages, the same in
// every run. The controls are a read past a block's end and an overflow.
func TestParsersUnderSanitizers(t *testing.T) {
	const count = 1_200_000
	binary := sanitized(t, "testdata/parsers.c", "message.c")
	for fault, name := range map[string]string{"overrun": "heap-buffer-overflow", "overflow": "signed integer overflow"} {
		if out, err := exec.Command(binary, fault).CombinedOutput(); err == nil || !strings.Contains(string(out), name) {
			t.Fatalf("not shown: no sanitizer sees an %s: %v\n%s", fault, err, out)
		}
	}
	run := exec.Command(binary, fmt.Sprint(count), "20261130")
	run.Stdin = bytes.NewReader(seeds())
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var messages, launches, configs int
	if n, _ := fmt.Sscanf(string(out), "%d messages, %d launches and %d configurations accepted", &messages, &launches, &configs); n != 3 || messages != count {
		t.Fatalf("%s", out)
	}
	if launches < count/20 || configs < count/20 || launches+configs > count*3/4 {
		t.Errorf("not shown: too few or too many were accepted: %s", out)
	}
	t.Logf("%s", out)
}

func TestSocketsUnderSanitizers(t *testing.T) {
	out, err := exec.Command(sanitized(t, "testdata/sockets.c", "message.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// warnings are all that this code passes beyond -Wall and -Wextra.
const warnings = "-Wall -Wextra -Werror -Wshadow -Wconversion -Wsign-conversion -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes " +
	"-Wpointer-arith -Wcast-align -Wundef -Wwrite-strings -Wnull-dereference -Wswitch-enum -Wredundant-decls -Wold-style-definition"

func TestNoWarnings(t *testing.T) {
	files, err := filepath.Glob("*.c")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	own := map[string]string{
		"gcc":   " -Walloca -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init -Wstack-usage=16384 -fanalyzer",
		"clang": " -Wimplicit-fallthrough -Wunreachable-code -Wcomma",
	}
	for compiler, more := range own {
		t.Run(compiler, func(t *testing.T) {
			path := need.Command(t, compiler)
			for _, file := range files {
				args := append(strings.Fields(warnings+more), "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-c", "-o", os.DevNull, file)
				if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", file, err, out)
				}
			}
		})
	}
}
