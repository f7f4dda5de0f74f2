// Answers the runner's calls (see the package rig) on stdin, as receiver, as sender, or as one of a cluster's members.
package kith.peers;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.pekko.Version;

public final class Main {
  private static final PrintStream OUT = System.out;
  private static volatile Node node;
  private static volatile Member member;

  private Main() {}

  public static void main(String[] args) throws Exception {
    System.setOut(System.err); // whatever a library prints is no answer
    Locale.setDefault(Locale.ROOT);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String call = line;
      new Thread(() -> answer(call)).start();
    }
    Runtime.getRuntime().halt(0); // the runner has closed the pipe, or died
  }

  private static void answer(String line) {
    String result;
    try {
      result = "\"result\":" + call(text(line, "op"), line);
    } catch (Exception e) {
      result = "\"error\":\"" + e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", "'") + "\"";
    }
    synchronized (OUT) {
      OUT.println("{\"id\":" + number(line, "id") + "," + result + "}");
      OUT.flush();
    }
  }

  private static String call(String op, String line) throws Exception {
    switch (op) {
      case "serve":
        node = Node.serve();
        return String.format("{\"Addr\":\"%s\",\"Version\":\"%s, Java %s\"}", node.address(), Version.current(),
            System.getProperty("java.version"));
      case "dial":
        node = Node.dial(text(line, "Addr"));
        return "{}";
      case "usage":
        var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return String.format("{\"Count\":%d,\"At\":%d,\"CPU\":%d}", Entity.COUNT.sum(), System.nanoTime(),
            os.getProcessCpuTime());
      case "load":
        Node.Result r = node.load(text(line, "Work"), text(line, "Variant").equals("sharded"), (int) number(line, "Size"),
            (int) number(line, "Inflight"), number(line, "Nanos"));
        return String.format("{\"Sent\":%d,\"Failed\":%d,\"FirstErr\":\"%s\",\"P50\":%.3f,\"P99\":%.3f}", r.sent(),
            r.failed(), r.firstErr().replaceAll("[\"\\\\\\p{Cntrl}]", "'"), r.p50(), r.p99());
      case "member":
        member = new Member(text(line, "Addr"));
        return String.format("{\"Addr\":\"%s\",\"Version\":\"%s, Java %s\"}", member.address(), Version.current(),
            System.getProperty("java.version"));
      case "whole":
        return String.format("{\"Members\":%d}", member.whole());
      case "home":
        return String.format("{\"Addr\":\"%s\"}", member.home(text(line, "Entity")));
      case "watch":
        member.watch(text(line, "Entity"));
        return "{}";
      case "answer":
        Member.Answer a = member.answer(text(line, "Addr"));
        return String.format("{\"Before\":\"%s\",\"From\":\"%s\",\"Unreachable\":%d,\"Removed\":%d}", a.before(), a.from(),
            a.unreachable(), a.removed());
      default:
        throw new IllegalArgumentException("unknown op " + op);
    }
  }

  // Arguments are flat objects, so that no parser is needed.

  private static String text(String line, String key) {
    Matcher m = Pattern.compile("\"" + key + "\":\"([^\"]*)\"").matcher(line);
    return m.find() ? m.group(1) : "";
  }

  private static long number(String line, String key) {
    Matcher m = Pattern.compile("\"" + key + "\":([0-9]+)").matcher(line);
    return m.find() ? Long.parseLong(m.group(1)) : 0;
  }
}
