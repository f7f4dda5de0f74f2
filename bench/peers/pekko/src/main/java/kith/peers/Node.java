// One node: a receiver with its entities, or a sender that found them, and the loads that it runs.
package kith.peers;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Address;
import org.apache.pekko.actor.AddressFromURIString;
import org.apache.pekko.actor.Props;
import org.apache.pekko.cluster.Cluster;
import org.apache.pekko.cluster.MemberStatus;
import org.apache.pekko.cluster.sharding.ClusterSharding;
import org.apache.pekko.cluster.sharding.ClusterShardingSettings;
import org.apache.pekko.cluster.sharding.ShardRegion;
import org.apache.pekko.pattern.Patterns;

final class Node {
  static final int ENTITIES = 1000;
  static final int SHARDS = 100;
  static final int SENDERS = 16;
  static final int AT_ONCE = 16; // messages whose room a sender takes in one go
  static final int BUCKETS = 1_000_000; // of latencies, 100 ns each: up to 100 ms
  static final Duration LIMIT = Duration.ofSeconds(5);
  static final String ROLE = "sink";

  private static final String SETTINGS =
      """
      pekko {
        loglevel = OFF
        stdout-loglevel = OFF
        log-dead-letters = off
        coordinated-shutdown.exit-jvm = off
        actor {
          provider = cluster
          allow-java-serialization = off
          serializers.work = "kith.peers.WorkSerializer"
          serialization-bindings { "kith.peers.Work" = work }
        }
        remote.artery {
          transport = tcp
          canonical { hostname = "127.0.0.1", port = 0 }
          advanced.outbound-message-queue-size = 262144
        }
        cluster {
          jmx.enabled = off
          sharding { passivation.strategy = none, number-of-shards = 100 }
        }
      }
      """;

  private final ActorSystem system;
  private final ActorRef region;
  private ActorRef[] refs;
  private ActorRef host;

  private Node(boolean receiver) {
    Config roles = ConfigFactory.parseString("pekko.cluster.roles = [" + (receiver ? ROLE : "") + "]");
    system = ActorSystem.create("peers", roles.withFallback(ConfigFactory.parseString(SETTINGS)).withFallback(
        ConfigFactory.load()));
    ShardRegion.MessageExtractor extractor = new ShardRegion.HashCodeMessageExtractor(SHARDS) {
      @Override
      public String entityId(Object o) {
        return o instanceof Work w ? w.id : null;
      }
    };
    region = receiver
        ? ClusterSharding.get(system).start("sink", Props.create(Entity.class, Entity::new),
            ClusterShardingSettings.create(system).withRole(ROLE), extractor)
        : ClusterSharding.get(system).startProxy("sink", Optional.of(ROLE), extractor);
  }

  /** The id of an entity: 16 bytes. */
  static String id(int i) {
    return String.format("entity-%09d", i);
  }

  static Node serve() throws Exception {
    Node n = new Node(true);
    for (int i = 0; i < ENTITIES; i++) {
      n.system.actorOf(Props.create(Entity.class, Entity::new), id(i));
    }
    n.system.actorOf(Props.create(Host.class, Host::new), "host");
    Cluster.get(n.system).join(Cluster.get(n.system).selfAddress());
    n.up(1);
    return n;
  }

  static Node dial(String addr) throws Exception {
    Node n = new Node(false);
    Address seed = AddressFromURIString.parse(addr);
    Cluster.get(n.system).joinSeedNodes(List.of(seed));
    n.up(2);
    List<CompletableFuture<ActorRef>> found = new ArrayList<>();
    for (int i = 0; i < ENTITIES; i++) {
      found.add(n.find(addr + "/user/" + id(i)));
    }
    n.refs = new ActorRef[ENTITIES];
    for (int i = 0; i < ENTITIES; i++) {
      n.refs[i] = found.get(i).get();
    }
    n.host = n.find(addr + "/user/host").get();
    for (int i = 0; i < ENTITIES; i++) { // homes are known then, and the entities exist
      n.ask(true, i, new byte[1]);
    }
    return n;
  }

  String address() {
    return Cluster.get(system).selfAddress().toString();
  }

  private CompletableFuture<ActorRef> find(String path) {
    return system.actorSelection(path).resolveOne(Duration.ofSeconds(30)).toCompletableFuture();
  }

  private void up(int members) throws Exception {
    for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60); ; Thread.sleep(20)) {
      int up = 0;
      for (var m : Cluster.get(system).state().getMembers()) {
        up += m.status().equals(MemberStatus.up()) ? 1 : 0;
      }
      if (up >= members) {
        return;
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException("the cluster does not form");
      }
    }
  }

  private void tell(boolean sharded, int i, byte[] payload) {
    (sharded ? region : refs[i]).tell(new Work(Work.TELL, IDS[i], 0, payload), ActorRef.noSender());
  }

  private void ask(boolean sharded, int i, byte[] payload) throws Exception {
    Patterns.ask(sharded ? region : refs[i], new Work(Work.ASK, IDS[i], 0, payload), LIMIT).toCompletableFuture().get();
  }

  private static final String[] IDS = new String[ENTITIES];

  static {
    for (int i = 0; i < ENTITIES; i++) {
      IDS[i] = id(i);
    }
  }

  /** What a load did. P50 and P99 are microseconds. */
  record Result(long sent, long failed, String firstErr, double p50, double p99) {}

  Result load(String work, boolean sharded, int size, int inflight, long nanos) throws Exception {
    long end = System.nanoTime() + nanos;
    return work.equals("tell") ? tells(sharded, size, end) : asks(sharded, size, inflight, end);
  }

  private Result tells(boolean sharded, int size, long end) throws Exception {
    Window window = new Window();
    ActorRef ear = system.actorOf(window.ear());
    host.tell(new Work(Work.WATCH, "", 0, new byte[0]), ear);
    AtomicLong sent = new AtomicLong();
    together(SENDERS, lane -> {
      byte[] payload = new byte[size];
      long mine = 0;
      for (int i = lane * 7919 % ENTITIES; System.nanoTime() < end && window.take(AT_ONCE, end); ) {
        for (int k = 0; k < AT_ONCE; k++) {
          tell(sharded, i, payload);
          i = i + 1 == ENTITIES ? 0 : i + 1;
        }
        mine += AT_ONCE;
      }
      sent.addAndGet(mine);
    });
    host.tell(new Work(Work.UNWATCH, "", 0, new byte[0]), ear);
    system.stop(ear);
    return new Result(sent.get(), 0, "", 0, 0);
  }

  private Result asks(boolean sharded, int size, int inflight, long end) throws Exception {
    AtomicIntegerArray took = new AtomicIntegerArray(BUCKETS);
    AtomicLong sent = new AtomicLong();
    AtomicLong failed = new AtomicLong();
    AtomicReference<String> first = new AtomicReference<>("");
    together(inflight, caller -> {
      byte[] payload = new byte[size];
      long mine = 0;
      for (int i = caller * 7919 % ENTITIES; ; i = (i + 1) % ENTITIES) {
        long begin = System.nanoTime();
        if (begin >= end) {
          break;
        }
        try {
          ask(sharded, i, payload);
        } catch (Exception e) {
          failed.incrementAndGet();
          first.compareAndSet("", e.toString());
          continue;
        }
        took.incrementAndGet((int) Math.min(BUCKETS - 1, (System.nanoTime() - begin) / 100));
        mine++;
      }
      sent.addAndGet(mine);
    });
    return new Result(sent.get(), failed.get(), first.get(), quantile(took, sent.get(), 50),
        quantile(took, sent.get(), 99));
  }

  private static double quantile(AtomicIntegerArray took, long n, int q) {
    long left = Math.max(1, n * q / 100);
    for (int i = 0; i < BUCKETS; i++) {
      left -= took.get(i);
      if (left <= 0) {
        return (i + 1) / 10.0;
      }
    }
    return BUCKETS / 10.0;
  }

  private interface Lane {
    void run(int n) throws Exception;
  }

  /** Runs n lanes, each in a thread of its own, and returns when all have ended. */
  private static void together(int n, Lane lane) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int k = 0; k < n; k++) {
      int which = k;
      Thread t = new Thread(() -> {
        try {
          lane.run(which);
        } catch (Exception e) {
          e.printStackTrace(); // its messages are missing from the sum
        }
      });
      t.start();
      threads.add(t);
    }
    for (Thread t : threads) {
      t.join();
    }
  }
}
