package sqlexec

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func openDisk(t testing.TB, dir string, bytes int64) *DiskCache {
	t.Helper()
	c, err := OpenDiskCache(dir, bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// diskQuery runs a query through a cache in memory that is empty, and the disk.
func diskQuery(c *DiskCache, d *Database, query string) (*Result, error) {
	memory := NewCache(1 << 20)
	memory.Disk = c
	return memory.Query(context.Background(), d, query)
}

func keyOf(i int) diskKey {
	sum := sha256.Sum256([]byte(fmt.Sprint(i)))
	return diskKey(sum[:keyBytes])
}

// The second program finds what the first has run: results of every type, and
// failures that are the query's own.
func TestDiskCacheOutlivesTheProgram(t *testing.T) {
	d, dir := openShop(t), t.TempDir()
	queries := []string{
		"SELECT * FROM item", "SELECT 1 WHERE 0",
		"SELECT NULL, -1, 9223372036854775807, 0.5, 'ö', x'00ff', ''", "SELECT nope", "SELECT FROM", "DELETE FROM item",
	}
	type outcome struct {
		result *Result
		err    error
	}
	all := func(c *DiskCache) (list []outcome) {
		for _, q := range queries {
			r, err := diskQuery(c, d, q)
			list = append(list, outcome{r, err})
		}
		return list
	}
	first := openDisk(t, dir, 1<<20)
	want := all(first)
	if s := first.Stats(); s != (DiskStats{Kept: len(queries)}) {
		t.Errorf("the first time: %+v", s)
	}
	second := openDisk(t, dir, 1<<20)
	if have := all(second); !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
	if s := second.Stats(); s != (DiskStats{Found: len(queries)}) {
		t.Errorf("the second time: %+v", s)
	}
}

// Nothing lasts that another database, other limits, the clock or chance would
// change.
func TestDiskCacheKeepsApart(t *testing.T) {
	c := openDisk(t, t.TempDir(), 1<<20)
	shop := openShop(t)
	again := func(d *Database, query string) {
		t.Helper()
		before := c.Stats().Found
		diskQuery(c, d, query)
		if c.Stats().Found != before {
			t.Errorf("%s was found", query)
		}
	}
	const query = "SELECT count(*) FROM item"
	diskQuery(c, shop, query)
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	text, err := os.ReadFile(shop.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o666); err != nil {
		t.Fatal(err)
	}
	open := func(path string, l Limits) *Database {
		d, err := Open(path, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	same := open(copied, DefaultLimits())
	if diskQuery(c, same, query); c.Stats().Found != 1 {
		t.Error("the same content at another path is not found")
	}
	narrow := DefaultLimits()
	narrow.Rows = 1
	again(open(copied, narrow), query)

	for _, text := range []string{
		"SELECT random()", "SELECT datetime('now')", "SELECT date()", "SELECT CURRENT_DATE", "SELECT strftime('%Y')", "SELECT datetime(0, 'unixepoch', 'localtime')",
		"WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r", // ends at the time limit
	} {
		d := shop
		if strings.HasPrefix(text, "WITH") {
			short := DefaultLimits()
			short.Timeout = 20 * time.Millisecond
			d = open(copied, short)
		}
		diskQuery(c, d, text)
		again(d, text)
	}
}

// A packed result comes back as it was, bit for bit.
func TestRecords(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) Value { return v }),
		rapid.Map(rapid.Float64(), func(v float64) Value { return v }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) Value { return string(v) }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) Value { return v }),
		rapid.Just[Value](nil),
		rapid.SampledFrom([]Value{math.Inf(1), math.Copysign(0, -1), int64(math.MinInt64)}),
	)
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "columns")
		r := &Result{
			Columns:   columns,
			Rows:      rapid.SliceOfN(rapid.SliceOfN(value, len(columns), len(columns)), 0, 5).Draw(t, "rows"),
			Truncated: rapid.Bool().Draw(t, "truncated"), Elapsed: time.Duration(rapid.Int64().Draw(t, "elapsed")),
		}
		have, err := unpacked(packed(record(r), nil))
		if err != nil || !reflect.DeepEqual(have.Result(), r) {
			t.Fatalf("have %+v\nwant %+v: %v", have, r, err)
		}
	})
}

func folderBytes(t testing.TB, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// The folder stays in its size, and what was kept last is there.
func TestDiskCacheStaysInItsBytes(t *testing.T) {
	const size = 1 << 20
	dir := t.TempDir()
	payload := make([]byte, 3000)
	for round := range 3 { // three programs, one after the other
		c := openDisk(t, dir, size)
		for i := range 1000 {
			c.put(keyOf(i+1000*round), payload)
			if n := folderBytes(t, dir); n > size {
				t.Fatalf("%d bytes", n)
			}
		}
		c.put(keyOf(-1), make([]byte, size/10)) // too large a part of it
		if _, ok := c.get(keyOf(-1)); ok {
			t.Error("a record of a tenth of the cache was kept")
		}
		if _, ok := c.get(keyOf(999 + 1000*round)); !ok {
			t.Error("the last record is gone")
		}
	}
	c := openDisk(t, dir, size)
	found := 0
	for i := range 3000 {
		if _, ok := c.get(keyOf(i)); ok {
			found++
		}
	}
	if most := size / 3024; found > most || found < most*3/4 {
		t.Errorf("%d records found; there is room for %d", found, most)
	}
	if _, err := OpenDiskCache(dir, 1000); err == nil {
		t.Error("a cache of 1000 bytes is accepted")
	}
}

// Damaged files are passed over: a record is whole or is not there.
func TestDamagedDiskCache(t *testing.T) {
	dir := t.TempDir()
	c := openDisk(t, dir, 1<<20)
	payload := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i), 30)) }
	for i := range 50 {
		c.put(keyOf(i), payload(i))
	}
	paths, _ := c.list()
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		damaged := append([]byte{}, whole...)
		for range 1 + random.IntN(5) {
			damaged[random.IntN(len(damaged))] ^= byte(1 + random.IntN(255))
		}
		damaged = damaged[:random.IntN(len(damaged)+1)]
		if err := os.WriteFile(paths[0], damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := OpenDiskCache(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if have, ok := c.get(keyOf(i)); ok && string(have) != string(payload(i)) {
				t.Fatalf("record %d reads %q", i, have)
			}
		}
		c.Close()
	}
}

// Processes that write at once, of which some are killed, spoil nothing for each
// other or for those who come later.
func TestDiskCacheSharedByProcesses(t *testing.T) {
	const variable = "CAPER_TEST_DISK_CACHE"
	value := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i, " "), 20)) }
	if dir := os.Getenv(variable); dir != "" {
		c := openDisk(t, dir, 2<<20)
		for i := 0; ; i = (i + 1) % 30000 {
			if have, ok := c.get(keyOf(i)); ok && string(have) != string(value(i)) {
				fmt.Printf("record %d reads %q\n", i, have)
				return
			}
			c.put(keyOf(i), value(i))
		}
	}
	dir := t.TempDir()
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(300+100*n)*time.Millisecond)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDiskCacheSharedByProcesses$")
			child.Env = append(os.Environ(), variable+"="+dir)
			said, err := child.Output()
			if len(said) > 0 || child.ProcessState != nil && child.ProcessState.Exited() {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
	group.Wait()
	c := openDisk(t, dir, 2<<20)
	found := 0
	for i := range 30000 {
		have, ok := c.get(keyOf(i))
		if ok {
			found++
		}
		if ok && string(have) != string(value(i)) {
			t.Fatalf("record %d reads %q", i, have)
		}
	}
	if found == 0 {
		t.Error("nothing is left")
	}
	// Six writers may pass the size by a segment each.
	if n, most := folderBytes(t, dir), int64(2<<20)*(segmentsOfACache+6)/segmentsOfACache; n > most {
		t.Errorf("%d bytes; want at most %d", n, most)
	}
}

// A cache that cannot be written any more does not disturb its user.
func TestDiskCacheWithoutRoom(t *testing.T) {
	d, dir := openShop(t), filepath.Join(t.TempDir(), "cache")
	c := openDisk(t, dir, 1<<20)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r, err := diskQuery(c, d, "SELECT 1"); err != nil || len(r.Rows) != 1 {
		t.Error(err)
	}
	if err := c.Stats().Err; !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stats say %v", err)
	}
}

func BenchmarkDiskCacheGet(b *testing.B) {
	c := openDisk(b, b.TempDir(), 1<<30)
	const records = 100_000
	for i := range records {
		c.put(keyOf(i), make([]byte, 300))
	}
	i := 0
	for b.Loop() {
		i++
		if _, ok := c.get(keyOf(i % records)); !ok {
			b.Fatal("not there")
		}
	}
}
