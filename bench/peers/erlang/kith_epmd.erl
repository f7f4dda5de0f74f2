%% Names of nodes without a daemon: the runner tells each sender at which port its receiver listens.
-module(kith_epmd).
-export([listening/0, known/2]).
-export([start_link/0, register_node/2, register_node/3, address_please/3, port_please/2, port_please/3,
         listen_port_please/2, names/1]).

%% listening returns the port at which this node accepts others.
listening() -> persistent_term:get({?MODULE, listening}).

%% known makes a node's port known here.
known(Node, Port) ->
    [Name, _] = string:split(atom_to_list(Node), "@"),
    persistent_term:put({?MODULE, Name}, Port).

%% What the kernel asks of the module that takes the daemon's place (-epmd_module).

start_link() -> ignore.

register_node(Name, Port) -> register_node(Name, Port, inet).

register_node(_, Port, _) ->
    persistent_term:put({?MODULE, listening}, Port),
    {ok, 4 + erlang:phash2(os:getpid(), 1 bsl 30)}.

listen_port_please(_, _) -> {ok, 0}.

address_please(Name, _, _) ->
    {port, Port, Version} = port_please(Name, none),
    {ok, {127, 0, 0, 1}, Port, Version}.

port_please(Name, Host) -> port_please(Name, Host, infinity).

port_please(Name, _, _) -> {port, persistent_term:get({?MODULE, Name}), 6}.

names(_) -> {error, address}.
