#!/usr/bin/perl
# What Grid'5000's API is to a client, over TLS on 127.0.0.1: g5k-api 3.11 and what is behind it, as far as it is documented.
#
#   grid5000-server.pl FOLDER NODE...
#
# FOLDER has server.pem and server.key; the server writes `port` and `log` (METHOD PATH BODY, a request a line) into it, and
# reads, at each request, what is to happen:
#
#   polls    how often a job or a deployment is asked after before it moves on (2)
#   ko       NODE TIMES: so many deployments of the node fail
#   error    so many deployments end with `error`, and no result
#   faults   COUNT KIND REGEX: what METHOD PATH matches is answered with 500, html, half, or nothing
#   hold     REGEX: what it matches is done, and answered once the file is gone; `holding` is there meanwhile
use strict;
use warnings;
use IO::Socket::SSL;
use JSON::PP;
use MIME::Base64;
$SIG{PIPE} = 'IGNORE';
my ($folder, @nodes) = @ARGV;
my $json = JSON::PP->new->canonical->pretty;
my ($last, %jobs, %deployments, %ko, $errors, @faults, $faults_read) = (1000);
my $authorization = 'Basic ' . encode_base64('jdoe:not-for-the-archive', '');

sub slurp { my ($name) = @_; open my $file, '<', "$folder/$name" or return ''; local $/; <$file> }
sub setting { my ($name, $default) = @_; my $text = slurp($name); $text =~ s/\s+$//; length $text ? $text : $default }
sub append { my ($name, $line) = @_; open my $file, '>>', "$folder/$name" or die; print $file "$line\n" }
sub short { (split /\./, $_[0])[0] }
sub answer { my ($status, $content, %headers) = @_; return {status => $status, body => ref $content ? $json->encode($content) : $content, %headers} }
sub items { answer(200, {total => scalar @_, offset => 0, items => [@_], links => []}) }
sub missing { answer(404, "Couldn't find it\nbacktrace") }

# ---- Jobs: a state lasts for so many polls. One that nobody knows is among them; null fields are left out.
sub poll_job {
    my ($job) = @_;
    my @states = $job->{deleted} ? ('running', 'finishing', 'error') : qw(waiting resting running);
    my $limit = $job->{deleted} ? 1 : setting('polls', 2) / 2;
    return if $job->{state} eq $states[-1] || ++$job->{polls} < $limit;
    $job->{polls} = 0;
    my ($now) = grep { $states[$_] eq $job->{state} } 0 .. $#states;
    $job->{state} = $states[$now + 1];
    $job->{started_at} = time if $job->{state} eq 'running';
}
sub show_job {
    my ($job, $is_whole) = @_;
    my %item = map { $_ => $job->{$_} } grep { defined $job->{$_} } qw(uid user name state walltime queue types message started_at submitted_at);
    if ($is_whole) {
        my $is_running = $job->{state} eq 'running';
        $item{assigned_nodes} = $is_running ? $job->{nodes} : [];
        $item{resources_by_type} = {cores => [map { ("$_/0", "$_/1") } @{$job->{nodes}}]} if $is_running;
    }
    return \%item;
}
sub submit {
    my ($wish) = @_;
    my ($count, $hours, $minutes, $seconds) = $wish->{resources} =~ /nodes=(\d+),walltime=(\d+):(\d+):(\d+)$/ or return answer(400, 'Request failed with status 400: bad resources');
    return answer(400, "Request to /oarapi/jobs.json failed with status 400: There are not enough resources for your request\nat line 3") if $count > @nodes;
    $last++;
    my $job = $jobs{$last} = {%$wish, uid => $last, user => 'jdoe', state => 'waiting', message => 'FIFO scheduling OK', submitted_at => time,
        walltime => $hours * 3600 + $minutes * 60 + $seconds, queue => $wish->{queue} || 'default', nodes => [@nodes[0 .. $count - 1]]};
    return answer(201, show_job($job, 1), Location => "/stable/sites/grenoble/jobs/$last");
}

# ---- Deployments: what is asked after is as old as the cache, which is as old as some polls
sub deploy {
    my ($wish) = @_;
    my $uid = 'D-' . ++$last;
    return answer(400, "Cannot launch deployment: Invalid environment specification -- the environment $wish->{environment}::: does not exist") if $wish->{environment} ne 'debian12-min';
    my %running = map { $_ => 1 } map { @{$_->{nodes}} } grep { $_->{state} eq 'running' && grep { $_ eq 'deploy' } @{$_->{types}} } values %jobs;
    return answer(403, 'Cannot launch deployment: no rights on the nodes') if grep { !$running{$_} } @{$wish->{nodes}};
    return answer(500, 'Cannot launch deployment: nodes are being deployed') if grep { $_->{status} eq 'processing' } values %deployments;
    %ko = setting('ko', '') =~ /^(\S+) (\d+)/mg unless %ko;
    $errors = setting('error', 0) unless defined $errors;
    my $item = $deployments{$uid} = {%$wish, uid => $uid, site_uid => 'grenoble', user_uid => 'jdoe', status => 'processing', created_at => time, updated_at => time};
    return answer(201, $item, Location => "/stable/sites/grenoble/deployments/$uid");
}
my %cache; # of a deployment: what was answered last, and how often
sub poll_deployment {
    my ($item) = @_;
    my $cached = $cache{$item->{uid}} ||= {polls => 0};
    return $cached->{text} if $cached->{text} && $cached->{polls}++ % setting('polls', 2);
    if ($item->{status} eq 'processing') {
        if ($errors) { $errors--; $item->{status} = 'error' } elsif (++$item->{asked} > 1) { $item->{status} = 'terminated' }
    } elsif ($item->{status} eq 'terminated' && !$item->{result}) { # the result comes later
        $item->{result}{$_} = {macro => undef, micro => undef, state => $ko{$_} && $ko{$_}-- > 0 ? 'KO' : 'OK'} for @{$item->{nodes}};
        $item->{result}{$_}{state} eq 'OK' and append('deployed', $_) for @{$item->{nodes}};
    }
    my %shown = %$item; delete $shown{asked};
    return $cached->{text} = $json->encode(\%shown);
}

# ---- What is only read
sub environments {
    my ($query) = @_;
    my @all = map { {name => 'debian12-min', version => $_, arch => 'x86_64', alias => 'debian12-x64-min', user => 'deploy', visibility => 'public',
        image => {file => "server:///images/$_.tar.zst", kind => 'tar', compression => 'zstd'}} } 2021090715, 2026010100;
    return items(grep { !$query->{name} || $_->{name} eq $query->{name} } $query->{latest_only} ? @all : $all[-1]);
}
sub metrics { # of a node with two ports, also at both ends of the window; and one of another window
    my ($query) = @_;
    my @values;
    for my $second ($query->{start_time}, $query->{end_time}) {
        my @t = gmtime($second + 3600);
        my $stamp = sprintf '%04d-%02d-%02dT%02d:%02d:%02d.250000+01:00', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0];
        push @values, map { {timestamp => $stamp, device_id => $query->{nodes}, metric_id => $query->{metrics}, value => 97.5 + $_,
            labels => {_device_orig => ["wattmetre1-port$_"]}} } 1, 2;
    }
    return answer(200, \@values);
}
sub node { my ($name) = @_; return {uid => $name, type => 'node', architecture => {nb_cores => 4, cpu_core_numbering => 'round-robin'}} }

sub route {
    my ($method, $path, $query, $body) = @_;
    return items({uid => 'grenoble'}, {uid => 'lyon'}) if $path eq '/sites';
    return missing() unless $path =~ s,^/sites/grenoble,,;
    return items({uid => 'dahu'}, {uid => 'yeti'}) if $path eq '/clusters';
    return environments($query) if $path eq '/environments';
    return metrics($query) if $path eq '/metrics';
    return answer(200, {uid => 'grenoble', clusters => {dahu => {nodes => {map { short($_) => node(short($_)) } @nodes}}}}) if $path eq '' && $query->{deep};
    return answer(200, node($1)) if $path =~ m,^/clusters/dahu/nodes/(\S+)$,;
    return submit($json->decode($body)) if "$method $path" eq 'POST /jobs';
    return deploy($json->decode($body)) if "$method $path" eq 'POST /deployments';
    if ($path eq '/jobs') { poll_job($_) for values %jobs; return items(map { show_job($_) } grep { $_->{name} eq $query->{name} } values %jobs) }
    return items(sort { $b->{created_at} <=> $a->{created_at} } values %deployments) if $path eq '/deployments';
    if ($path =~ m,^/jobs/(\d+)$, && $jobs{$1}) {
        my $job = $jobs{$1};
        if ($method eq 'DELETE') {
            @$job{qw(deleted state polls)} = (1, 'running', 0);
            $_->{status} = 'canceled' for grep { $_->{status} eq 'processing' } values %deployments;
            return answer(202, '', 'X-Oar-Info' => 'Deleting the job');
        }
        poll_job($job);
        return answer(200, show_job($job, 1));
    }
    return answer(200, poll_deployment($deployments{$1})) if $path =~ m,^/deployments/(D-\d+)$, && $deployments{$1};
    return missing();
}

sub spoil { # what faults make of an answer; undef: nothing is answered
    my ($asked, $answer) = @_;
    if (setting('faults', '') ne ($faults_read // '')) { @faults = map { [split / /, $_, 3] } split /\n/, $faults_read = setting('faults', '') }
    my ($fault) = grep { $_->[0] > 0 && $asked =~ /$_->[2]/ } @faults or return $answer;
    $fault->[0]--;
    return answer(500, "Internal Server Error\nstack") if $fault->[1] eq '500';
    return answer(200, '<html><body>Bad gateway</body></html>') if $fault->[1] eq 'html';
    return answer(200, substr $answer->{body}, 0, length($answer->{body}) / 2) if $fault->[1] eq 'half';
    return undef;
}

my $server = IO::Socket::SSL->new(LocalAddr => '127.0.0.1', Listen => 64, ReuseAddr => 1, SSL_cert_file => "$folder/server.pem", SSL_key_file => "$folder/server.key")
    or die "cannot listen: $!, $SSL_ERROR";
append('port', $server->sockport);
while (1) {
    my $client = $server->accept or next;
    my ($head, $body) = ('', '');
    while (defined(my $line = <$client>)) { $head .= $line; last if $line eq "\r\n" }
    my ($method, $target) = $head =~ m,^(\S+) /stable(\S*) HTTP, or next;
    read $client, $body, $1 if $head =~ /^content-length: (\d+)/im;
    append('log', "$method $target $body");
    my ($path, $text) = split /\?/, $target, 2;
    my %query = map { split /=/, $_, 2 } split /&/, $text // '';
    my $answer = ($head =~ /^authorization: (.*?)\r/im && $1 eq $authorization) ? route($method, $path, \%query, $body) : answer(401, 'Unauthorized');
    my $hold = setting('hold', '');
    if ($hold ne '' && "$method $target" =~ /$hold/) {
        append('holding', '');
        select undef, undef, undef, 0.02 while -e "$folder/hold";
        unlink "$folder/holding";
    }
    $answer = spoil("$method $target", $answer) or next;
    my ($status, $content) = (delete $answer->{status}, delete $answer->{body});
    print $client join "\r\n", "HTTP/1.1 $status Status", (map { "$_: $answer->{$_}" } keys %$answer), 'Retry-After: 0', 'Connection: close',
        'Content-Type: ' . ($content =~ /^[{[]/ ? 'application/json' : 'text/plain'), 'Content-Length: ' . length $content, '', $content;
    close $client;
}
