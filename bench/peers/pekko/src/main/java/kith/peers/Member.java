// A member of a cluster that is to lose another one: it says where an entity lives, and asks it until it answers again.
package kith.peers;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.AddressFromURIString;
import org.apache.pekko.actor.Props;
import org.apache.pekko.actor.UntypedAbstractActor;
import org.apache.pekko.cluster.Cluster;
import org.apache.pekko.cluster.ClusterEvent.CurrentClusterState;
import org.apache.pekko.cluster.MemberStatus;
import org.apache.pekko.cluster.sharding.ClusterSharding;
import org.apache.pekko.cluster.sharding.ClusterShardingSettings;
import org.apache.pekko.cluster.sharding.ShardRegion;
import org.apache.pekko.pattern.Patterns;

final class Member {
  static final Duration EVERY = Duration.ofMillis(50); // from one ask to the next, answered or not
  static final Duration LIMIT = Duration.ofSeconds(1); // of an ask

  private final ActorSystem system = ActorSystem.create("peers"); // with the settings of outages.conf
  private final Cluster cluster = Cluster.get(system);
  private final ActorRef region;
  private final ScheduledExecutorService asker = Executors.newSingleThreadScheduledExecutor();

  // The answers to what the asker sends; guarded by this.
  private String before = ""; // who answered last before the loss
  private long since; // asks that were sent from then on count; zero before the loss
  private CompletableFuture<String> first; // who answered the first of them

  /** Answers with the address of its node. */
  static final class Resident extends UntypedAbstractActor {
    private final byte[] here =
        Cluster.get(getContext().getSystem()).selfAddress().toString().getBytes(StandardCharsets.ISO_8859_1);

    @Override
    public void onReceive(Object o) {
      if (o instanceof Work w) {
        getSender().tell(new Work(Work.ASK, w.id, 0, here), getSelf());
      }
    }
  }

  /** Starts a member, which forms a cluster when there is no seed, and returns when it is Up. */
  Member(String seed) throws Exception {
    ShardRegion.MessageExtractor extractor = new ShardRegion.HashCodeMessageExtractor(Node.SHARDS) {
      @Override
      public String entityId(Object o) {
        return o instanceof Work w ? w.id : null;
      }
    };
    region = ClusterSharding.get(system).start("resident", Props.create(Resident.class, Resident::new),
        ClusterShardingSettings.create(system), extractor);
    cluster.joinSeedNodes(List.of(seed.isEmpty() ? cluster.selfAddress() : AddressFromURIString.parse(seed)));
    for (long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(3); ; Thread.sleep(50)) {
      if (cluster.selfMember().status().equals(MemberStatus.up())) {
        return;
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException("it is not let in");
      }
    }
  }

  String address() {
    return cluster.selfAddress().toString();
  }

  /** How many members this one sees Up and reachable; zero while it sees another one in any other state. */
  int whole() {
    CurrentClusterState s = cluster.state();
    int up = 0;
    for (var m : s.getMembers()) {
      if (!m.status().equals(MemberStatus.up())) {
        return 0;
      }
      up++;
    }
    return s.getUnreachable().isEmpty() ? up : 0;
  }

  private CompletableFuture<String> ask(String entity, Duration limit) {
    return Patterns.ask(region, new Work(Work.ASK, entity, 0, new byte[0]), limit).toCompletableFuture()
        .thenApply(o -> new String(((Work) o).payload, StandardCharsets.ISO_8859_1));
  }

  /** The address of the node where the entity lives. */
  String home(String entity) throws Exception {
    return ask(entity, Duration.ofSeconds(10)).get();
  }

  /** Asks the entity from now on. */
  synchronized void watch(String entity) {
    first = new CompletableFuture<>();
    since = 0;
    before = "";
    CompletableFuture<String> mine = first;
    asker.scheduleAtFixedRate(() -> {
      if (mine.isDone()) {
        throw new IllegalStateException("answered"); // ends this schedule
      }
      long at = System.nanoTime();
      ask(entity, LIMIT).thenAccept(from -> heard(mine, at, from));
    }, 0, EVERY.toNanos(), TimeUnit.NANOSECONDS);
  }

  private synchronized void heard(CompletableFuture<String> mine, long at, String from) {
    if (mine != first) {
      return;
    }
    if (since == 0) {
      before = from;
    } else if (at >= since) {
      mine.complete(from);
    }
  }

  /** What came after a loss: who answered first, and when this member saw the lost one unreachable and removed. */
  record Answer(String before, String from, long unreachable, long removed) {}

  /** Is called when a member has been lost, and returns when the watched entity has answered an ask sent after that. */
  Answer answer(String lost) throws Exception {
    CompletableFuture<String> mine;
    long begin = System.nanoTime();
    synchronized (this) {
      since = begin;
      mine = first;
    }
    long unreachable = 0;
    long removed = 0;
    while (true) {
      CurrentClusterState s = cluster.state();
      long after = System.nanoTime() - begin;
      if (unreachable == 0 && s.getUnreachable().stream().anyMatch(m -> m.address().toString().equals(lost))) {
        unreachable = after;
      }
      if (removed == 0 && s.members().forall(m -> !m.address().toString().equals(lost))) {
        removed = after;
      }
      try {
        return new Answer(before, mine.get(10, TimeUnit.MILLISECONDS), unreachable, removed);
      } catch (TimeoutException e) {
        continue; // not yet
      }
    }
  }
}
