%% One half of a pair of Erlang nodes: answers the runner's calls (see the package rig) on stdin, as receiver or sender.
-module(kith_peer).
-export([start/0]).

-define(ENTITIES, 1000).
-define(SENDERS, 16).
-define(WINDOW, 131072). % messages of one way that may be under way
-define(BUCKETS, 1000000). % of latencies, 100 ns each: up to 100 ms
-define(AT_ONCE, 64).       % messages whose room a sender takes in one go

%% Indices of the counters that a sender's processes share.
-define(TAKEN, 1).
-define(DONE, 2).

start() ->
    ok = io:setopts(standard_io, [binary]),
    {ok, _} = net_kernel:start([list_to_atom("kith" ++ os:getpid() ++ "@127.0.0.1"), longnames]),
    true = erlang:set_cookie(node(), kith_peers),
    loop(#{counts => counters:new(64, [write_concurrency])}).

loop(State) ->
    case io:get_line("") of
        Line when is_binary(Line) ->
            Id = number(Line, "id"),
            loop(try call(text(Line, "op"), Line, State) of
                {later, Next} -> Next; % a process of its own answers
                {Result, Next} -> answer(Id, ["\"result\":", Result]), Next
            catch
                _:Why:At -> answer(Id, ["\"error\":\"", escape(io_lib:format("~0p ~0p", [Why, At])), "\""]), State
            end);
        _ -> % the runner has closed the pipe, or died
            erlang:halt(0, [{flush, false}])
    end.

answer(Id, What) -> io:put_chars(["{\"id\":", integer_to_list(Id), ",", What, "}\n"]).

%% The calls. Arguments are flat objects, so that no parser is needed.

call(<<"serve">>, _, State = #{counts := Counts}) ->
    Pids = [spawn_opt(fun() -> entity(Counts, 1 + I rem 64) end, [{message_queue_data, off_heap}])
            || I <- lists:seq(0, ?ENTITIES - 1)],
    register(host, spawn(fun() -> host(Pids, Counts) end)),
    Version = erlang:system_info(otp_release) ++ " (erts " ++ erlang:system_info(version) ++ ")",
    Addr = atom_to_list(node()) ++ " " ++ integer_to_list(kith_epmd:listening()),
    {["{\"Addr\":\"", Addr, "\",\"Version\":\"", Version, "\"}"], State};
call(<<"dial">>, Line, State) ->
    [Name, Port] = binary:split(text(Line, "Addr"), <<" ">>),
    Node = binary_to_atom(Name),
    ok = kith_epmd:known(Node, binary_to_integer(Port)),
    true = net_kernel:connect_node(Node),
    {host, Node} ! {entities, self()},
    Pids = receive {entities, P} -> list_to_tuple(P) end,
    {"{}", State#{node => Node, pids => Pids}};
call(<<"usage">>, _, State = #{counts := Counts}) ->
    {Cpu, _} = statistics(runtime),
    {io_lib:format("{\"Count\":~b,\"At\":~b,\"CPU\":~b}",
        [total(Counts), erlang:monotonic_time(nanosecond), Cpu * 1000000]), State};
call(<<"load">>, Line, State) ->
    Payload = binary:copy(<<0>>, number(Line, "Size")),
    Nanos = number(Line, "Nanos"),
    %% The load has a process of its own: usage is asked for meanwhile, and answers come in any order.
    Id = number(Line, "id"),
    Work = text(Line, "Work"),
    Inflight = number(Line, "Inflight"),
    spawn(fun() ->
        {Sent, P50, P99} = load(Work, Payload, Inflight, Nanos, State),
        answer(Id, io_lib:format("\"result\":{\"Sent\":~b,\"Failed\":0,\"FirstErr\":\"\",\"P50\":~.3f,\"P99\":~.3f}",
            [Sent, P50, P99]))
    end),
    {later, State}.

%% The receiver.

entity(Counts, Stripe) ->
    receive
        {tell, _Payload} -> counters:add(Counts, Stripe, 1);
        {ask, From, Ref, Payload} ->
            counters:add(Counts, Stripe, 1),
            From ! {Ref, Payload}
    end,
    entity(Counts, Stripe).

%% host tells which entities there are, and while a sender waits for it, how much has reached them.
host(Pids, Counts) ->
    receive
        {entities, From} -> From ! {entities, Pids}, host(Pids, Counts);
        {watch, From, Ref} ->
            Told = total(Counts),
            From ! {Ref, Told},
            watch(From, Ref, Counts, Told),
            host(Pids, Counts)
    end.

watch(From, Ref, Counts, Told) ->
    receive {unwatch, Ref} -> ok
    after 1 ->
        case total(Counts) of
            Told -> watch(From, Ref, Counts, Told);
            N -> From ! {Ref, N}, watch(From, Ref, Counts, N)
        end
    end.

total(Counts) -> lists:sum([counters:get(Counts, I) || I <- lists:seq(1, 64)]).

%% The sender.

load(<<"tell">>, Payload, _, Nanos, #{node := Node, pids := Pids}) ->
    Room = atomics:new(2, []),
    Ref = make_ref(),
    Me = self(),
    {host, Node} ! {watch, Me, Ref},
    Base = receive {Ref, N} -> N end,
    End = erlang:monotonic_time(nanosecond) + Nanos,
    Senders = [spawn_monitor(fun() -> exit({sent, tell(Room, Pids, Payload, (L * 7919) rem ?ENTITIES, End, 0)}) end)
               || L <- lists:seq(0, ?SENDERS - 1)],
    Sent = credit(length(Senders), Room, Ref, Base, 0),
    {host, Node} ! {unwatch, Ref},
    {Sent, 0.0, 0.0};
load(<<"ask">>, Payload, Inflight, Nanos, #{pids := Pids}) ->
    End = erlang:monotonic_time(nanosecond) + Nanos,
    Took = counters:new(?BUCKETS, [write_concurrency]), % how many took so many times 100 ns
    Askers = [spawn_monitor(fun() -> ask(Pids, Payload, (K * 7919) rem ?ENTITIES, End, Took) end)
              || K <- lists:seq(0, Inflight - 1)],
    [receive {'DOWN', M, process, _, Why} -> normal = Why end || {_, M} <- Askers],
    Counts = [counters:get(Took, I) || I <- lists:seq(1, ?BUCKETS)],
    N = lists:sum(Counts),
    {N, quantile(Counts, max(1, N * 50 div 100), 0), quantile(Counts, max(1, N * 99 div 100), 0)}.

%% quantile is the microseconds that so many did not exceed.
quantile([N | Rest], Left, I) when N < Left, Rest =/= [] -> quantile(Rest, Left - N, I + 1);
quantile(_, _, I) -> (I + 1) / 10.

%% credit hears how much has arrived while senders send, and sums what they sent.
credit(0, _, _, _, Sent) -> Sent;
credit(Left, Room, Ref, Base, Sent) ->
    receive
        {Ref, Count} -> atomics:put(Room, ?DONE, Count - Base), credit(Left, Room, Ref, Base, Sent);
        {'DOWN', _, process, _, {sent, N}} -> credit(Left - 1, Room, Ref, Base, Sent + N)
    end.

tell(Room, Pids, Payload, I, End, Sent) ->
    case erlang:monotonic_time(nanosecond) < End of
        false -> Sent;
        true ->
            case atomics:get(Room, ?TAKEN) - atomics:get(Room, ?DONE) < ?WINDOW of
                true ->
                    atomics:add(Room, ?TAKEN, ?AT_ONCE),
                    tell(Room, Pids, Payload, some(Pids, Payload, I, ?AT_ONCE), End, Sent + ?AT_ONCE);
                false ->
                    receive after 1 -> tell(Room, Pids, Payload, I, End, Sent) end
            end
    end.

some(_, _, I, 0) -> I;
some(Pids, Payload, I, Left) ->
    element(I + 1, Pids) ! {tell, Payload},
    some(Pids, Payload, (I + 1) rem ?ENTITIES, Left - 1).

ask(Pids, Payload, I, End, Took) ->
    Begin = erlang:monotonic_time(nanosecond),
    case Begin < End of
        false -> ok;
        true ->
            Ref = make_ref(),
            element(I + 1, Pids) ! {ask, self(), Ref, Payload},
            receive {Ref, _} -> ok end,
            Nanos = erlang:monotonic_time(nanosecond) - Begin,
            counters:add(Took, min(?BUCKETS, 1 + Nanos div 100), 1),
            ask(Pids, Payload, (I + 1) rem ?ENTITIES, End, Took)
    end.

%% Of the lines.

number(Line, Key) ->
    case re:run(Line, ["\"", Key, "\":([0-9]+)"], [{capture, [1], list}]) of
        {match, [N]} -> list_to_integer(N);
        nomatch -> 0
    end.

text(Line, Key) ->
    {match, [T]} = re:run(Line, ["\"", Key, "\":\"([^\"]*)\""], [{capture, [1], binary}]),
    T.

escape(Text) -> re:replace(Text, "[\"\\\\[:cntrl:]]", "'", [global]).
