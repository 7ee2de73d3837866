// Callers of etcd by its own client, clientv3: what cortado_load.py is for Cortado, with the same keys and sizes.
//
//	etcd_load [-callers N] [-keys N ...] WORKLOAD ENDPOINT,...
//
// put, get, batch, range, range_overwritten and txn_...: N goroutines share one client. They call for a while uncounted, and
// "ready" is printed. Each line of standard input then asks for a round of so many seconds: "counting" is printed when
// the round's own warm-up is over, and at its end what was seen, as a line of JSON. The end of the input ends it all.
//
// fill writes what gets and ranges find. failover puts, each goroutine through a client of its own, until it is ended,
// and prints for each acknowledged put when it began and ended (wall clock, nanoseconds).
//
// Built with Debian's packages alone: see etcd_program.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/clientv3"
)

var (
	callers    = flag.Int("callers", 1, "goroutines, each with one call in flight")
	keys       = flag.Int("keys", 0, "puts and batches go to random ones among so many")
	stored     = flag.Int("stored", 0, "keys that gets and ranges find, of each kind")
	overwrites = flag.Int("overwrites", 0, "how often the overwritten kind is written after the first time")
	valueBytes = flag.Int("value-bytes", 0, "of each value")
	batchPuts  = flag.Int("batch-puts", 0, "puts of a transaction")
	rangeKeys  = flag.Int("range-keys", 0, "keys of a range")
	hotKeys    = flag.Int("hot-keys", 0, "that all callers of a hot transaction want")
	warmCalls  = flag.Int("warm-calls", 0, "of each caller, before it is ready")
	warmMs     = flag.Int("warm-ms", 0, "of each round, before it counts")
)

const (
	putKey         = "put-%08d"
	batchKey       = "batch-%08d-%04d"
	storedKey      = "stored-%08d"
	overwrittenKey = "overwritten-%08d"
	failoverKey    = "failover-%d-%d"

	callTimeout = 10 * time.Second
	// A put that no member answers within it is tried again.
	failoverTimeout = time.Second
	fillers         = 16
)

type ask func(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error

var oneRow = 1

var workloads = map[string]ask{
	"put":               put,
	"get":               get,
	"batch":             batch,
	"range":             rangeOf(storedKey),
	"range_overwritten": rangeOf(overwrittenKey),
	"txn_1":             txn(1, false, keys),
	"txn_1_hot":         txn(1, true, keys),
	"txn_10":            txn(10, false, keys),
	"txn_10_hot":        txn(10, true, keys),
	"txn_row":           txn(1, false, &oneRow),
}

func put(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error {
	value := make([]byte, *valueBytes)
	draw.Read(value)
	_, err := client.Put(ctx, fmt.Sprintf(putKey, draw.Intn(*keys)), string(value))
	return err
}

// Linearizable, as is every read here: it is clientv3's default.
func get(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error {
	reply, err := client.Get(ctx, fmt.Sprintf(storedKey, draw.Intn(*stored)))
	if err == nil && (len(reply.Kvs) != 1 || len(reply.Kvs[0].Value) != *valueBytes) {
		err = fmt.Errorf("a wrong answer: %v", reply)
	}
	return err
}

func batch(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error {
	order := draw.Intn(*keys)
	value := make([]byte, *valueBytes)
	draw.Read(value)
	puts := make([]clientv3.Op, *batchPuts)
	for line := range puts {
		puts[line] = clientv3.OpPut(fmt.Sprintf(batchKey, order, line), string(value))
	}
	_, err := client.Txn(ctx).Then(puts...).Commit()
	return err
}

// Reads keys, among so many, and writes them, where none has changed between; else again.
func txn(count int, hot bool, among *int) ask {
	return func(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error {
		chosen := distinct(count, hot, *among, draw)
		for {
			reads := make([]clientv3.Op, count)
			for i, key := range chosen {
				reads[i] = clientv3.OpGet(key)
			}
			found, err := client.Txn(ctx).Then(reads...).Commit()
			if err != nil {
				return err
			}
			compares, puts := make([]clientv3.Cmp, count), make([]clientv3.Op, count)
			value := make([]byte, *valueBytes)
			draw.Read(value)
			for i, key := range chosen {
				var revision int64
				if kvs := found.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
					revision = kvs[0].ModRevision
				}
				compares[i] = clientv3.Compare(clientv3.ModRevision(key), "=", revision)
				puts[i] = clientv3.OpPut(key, string(value))
			}
			written, err := client.Txn(ctx).If(compares...).Then(puts...).Commit()
			if err != nil || written.Succeeded {
				return err
			}
		}
	}
}

// Of hot ones, each key is with a hundredth's chance one of a few that all callers want.
func distinct(count int, hot bool, among int, draw *rand.Rand) []string {
	seen := map[string]bool{}
	var chosen []string
	for len(chosen) < count {
		number := draw.Intn(among)
		if hot && draw.Intn(100) == 0 {
			number = draw.Intn(*hotKeys)
		}
		if key := fmt.Sprintf(putKey, number); !seen[key] {
			seen[key] = true
			chosen = append(chosen, key)
		}
	}
	return chosen
}

// With the exact end and no limit: with a limit etcd still counts every key up to the end.
func rangeOf(format string) ask {
	return func(ctx context.Context, client *clientv3.Client, draw *rand.Rand) error {
		start := draw.Intn(*stored - *rangeKeys)
		end := clientv3.WithRange(fmt.Sprintf(format, start+*rangeKeys))
		reply, err := client.Get(ctx, fmt.Sprintf(format, start), end)
		if err == nil && len(reply.Kvs) != *rangeKeys {
			err = fmt.Errorf("a wrong answer: %d keys", len(reply.Kvs))
		}
		return err
	}
}

func main() {
	flag.Parse()
	workload, endpoints := flag.Arg(0), strings.Split(flag.Arg(1), ",")
	switch workload {
	case "fill":
		fill(open(endpoints))
	case "failover":
		failover(endpoints)
	default:
		rounds(open(endpoints), workloads[workload])
	}
}

func open(endpoints []string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: callTimeout})
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd_load:", err)
		os.Exit(1)
	}
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

type seen struct {
	Calls  int     `json:"calls"`
	P50Us  int64   `json:"p50_us"`
	P99Us  int64   `json:"p99_us"`
	CPUS   float64 `json:"cpu_s"`
	Failed int     `json:"failed"`
}

type caller struct {
	client *clientv3.Client
	asks   ask
	draw   *rand.Rand
	failed int
	// Of the calls that ended while a round counted, in microseconds.
	latencies []int64
}

func (c *caller) one() bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := c.asks(ctx, c.client, c.draw)
	if err != nil {
		if c.failed == 0 {
			fmt.Fprintln(os.Stderr, "a call failed:", err)
		}
		c.failed++
	}
	return err == nil
}

func rounds(client *clientv3.Client, asks ask) {
	all := make([]*caller, *callers)
	for number := range all {
		all[number] = &caller{client: client, asks: asks, draw: rand.New(rand.NewSource(int64(number)))}
	}
	together(all, func(c *caller) {
		for i := 0; i < *warmCalls; i++ {
			c.one()
		}
	})
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		seconds, err := strconv.ParseFloat(lines.Text(), 64)
		check(err)
		said, err := json.Marshal(round(all, time.Duration(seconds*float64(time.Second))))
		check(err)
		fmt.Println(string(said))
	}
}

func round(all []*caller, length time.Duration) seen {
	var counts, ended int32
	var result seen
	go func() {
		time.Sleep(time.Duration(*warmMs) * time.Millisecond)
		before := cpuSeconds()
		fmt.Println("counting")
		atomic.StoreInt32(&counts, 1)
		time.Sleep(length)
		atomic.StoreInt32(&counts, 0)
		result.CPUS = cpuSeconds() - before
		atomic.StoreInt32(&ended, 1)
	}()
	together(all, func(c *caller) {
		c.latencies, c.failed = c.latencies[:0], 0
		for atomic.LoadInt32(&ended) == 0 {
			began := time.Now()
			if c.one() && atomic.LoadInt32(&counts) == 1 {
				c.latencies = append(c.latencies, time.Since(began).Microseconds())
			}
		}
	})
	var latencies []int64
	for _, each := range all {
		latencies = append(latencies, each.latencies...)
		result.Failed += each.failed
	}
	sort.Slice(latencies, func(i, j int) bool { return latencies[i] < latencies[j] })
	if result.Calls = len(latencies); result.Calls > 0 {
		result.P50Us, result.P99Us = latencies[result.Calls/2], latencies[result.Calls*99/100]
	}
	return result
}

func together(all []*caller, work func(*caller)) {
	var running sync.WaitGroup
	for _, each := range all {
		running.Add(1)
		go func(c *caller) {
			defer running.Done()
			work(c)
		}(each)
	}
	running.Wait()
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// ---- fill and failover ----------------------------------------------------------------------------------------------

func fill(client *clientv3.Client) {
	write(client, storedKey)
	for version := 0; version <= *overwrites; version++ {
		write(client, overwrittenKey)
	}
}

func write(client *clientv3.Client, format string) {
	var running sync.WaitGroup
	starts := make(chan int)
	for i := 0; i < fillers; i++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for start := range starts {
				puts := make([]clientv3.Op, *batchPuts)
				for i := range puts {
					puts[i] = clientv3.OpPut(fmt.Sprintf(format, start+i), string(make([]byte, *valueBytes)))
				}
				_, err := client.Txn(context.Background()).Then(puts...).Commit()
				check(err)
			}
		}()
	}
	for start := 0; start < *stored; start += *batchPuts {
		starts <- start
	}
	close(starts)
	running.Wait()
}

func failover(endpoints []string) {
	for number := 0; number < *callers; number++ {
		go func(number int) {
			client := open(endpoints)
			value := string(make([]byte, *valueBytes))
			for count := 0; ; count++ {
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), failoverTimeout)
				_, err := client.Put(ctx, fmt.Sprintf(failoverKey, number, count), value)
				cancel()
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				fmt.Println(began.UnixNano(), time.Now().UnixNano())
			}
		}(number)
	}
	bufio.NewScanner(os.Stdin).Scan()
}
