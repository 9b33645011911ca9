package openat2fs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"codespace/openat2fs"
	"codespace/tests/need"
)

// many makes dirs times perDir files of 1 KiB, a quarter of them *.go.
func (g *ground) many(dirs, perDir int) []string {
	content := bytes.Repeat([]byte("x"), 1024)
	var all []string
	for d := range dirs {
		dir := fmt.Sprintf("d%02d/s%03d", d/32, d)
		must(g.t, os.MkdirAll(g.at(dir), 0o755))
		for f := range perDir {
			name := fmt.Sprintf("%s/f%03d.%s", dir, f, []string{"go", "c", "md", "txt"}[f%4])
			must(g.t, os.WriteFile(g.at(name), content, 0o644))
			all = append(all, name)
		}
	}
	return all
}

// BenchmarkRead reads 10,000 small files per round, in every way and through
// os.ReadFile.
func BenchmarkRead(b *testing.B) {
	g := newGround(b, openat2fs.Limits{})
	names := g.many(100, 100)
	var paths []openat2fs.Path
	for _, name := range names {
		paths = append(paths, path(b, name))
	}
	ctx := context.Background()
	each := func(name string, read func(i int) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range names {
					must(b, read(i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(names)), "ns/file")
		})
	}
	each("os.ReadFile", func(i int) error { _, err := os.ReadFile(g.at(names[i])); return err })
	buf := make([]byte, 0, 4096)
	each("Load", func(i int) error { _, _, err := g.root.Load(ctx, paths[i], buf); return err })
	each("Read", func(i int) error { _, err := g.root.Read(ctx, paths[i], openat2fs.Range{}); return err })
	each("Stat", func(i int) error { _, err := g.root.Stat(ctx, paths[i]); return err })
}

// BenchmarkFind lists 100,000 files in 1,024 directories, and has ripgrep do it.
func BenchmarkFind(b *testing.B) {
	g := newGround(b, openat2fs.Limits{FindPaths: 1 << 20, FindEntries: 1 << 20})
	files := len(g.many(1024, 98))
	find := func(glob string, want int) {
		b.Run("Find "+glob, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found := g.find(openat2fs.Query{Glob: glob}); len(found.Paths) != want || found.Truncated {
					b.Fatalf("%d of %d paths", len(found.Paths), want)
				}
			}
		})
	}
	find("**", files)
	find("**/*.go", 1024*25)
	find("d00/**", 32*98)
	b.Run("rg --files", func(b *testing.B) {
		rg := need.Command(b, "rg")
		for b.Loop() {
			out, err := exec.Command(rg, "--files", g.dir).Output()
			if err != nil || bytes.Count(out, []byte("\n")) != files {
				b.Fatalf("%v", err)
			}
		}
	})
}
