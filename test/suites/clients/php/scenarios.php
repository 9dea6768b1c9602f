<?php

// What the tests do with the package: `scenarios.php NAME` reads its input from stdin and prints JSON.

declare(strict_types=1);

namespace Vodbox {
    /** The clock of the package, `$GLOBALS['later']` seconds later than the system's. */
    function time(): int
    {
        return \time() + ($GLOBALS['later'] ?? 0);
    }
}

namespace {
    use Vodbox\Client;
    use Vodbox\PlaybackToken;
    use Vodbox\Webhook;

    spl_autoload_register(function (string $class): void {
        require getenv('VODBOX_PHP') . '/src/' . substr($class, strlen('Vodbox\\')) . '.php';
    });
    // A warning or a notice of the package is a fault.
    set_error_handler(fn (int $level, string $text) => error_reporting() & $level ? throw new ErrorException($text) : false);
    $given = json_decode(stream_get_contents(STDIN), true);

    function client(mixed ...$options): Client
    {
        global $given;
        return new Client($given['base'], ...($options + ['apiKey' => $given['key'] ?? null]));
    }

    /** The class and the fields of what a call throws. */
    function refusal(callable $call): ?array
    {
        try {
            $call();
        } catch (Throwable $error) {
            $fields = array_intersect_key(get_object_vars($error), array_flip(['status', 'errorCode', 'details', 'requestId']));
            return ['class' => $error::class, 'text' => $error->getMessage()] + $fields;
        }
        return null;
    }

    function titles(iterable $assets): array
    {
        $titles = [];
        foreach ($assets as $asset) {
            $titles[] = $asset['title'];
        }
        return $titles;
    }

    function created(Client $api, string $title, mixed ...$options): array
    {
        global $given;
        $asset = [
            'title' => $title,
            'input_status' => 'pending',
            'playback_status' => 'draft',
            'source_bytes' => 0,
            'storage_bytes' => 0,
            'duration_seconds' => 0,
            'source_key' => "tenants/{$given['tenant_id']}/sources/film.mp4",
        ];
        return $api->createAsset(['tenant_id' => $given['tenant_id'], 'video_asset' => $asset], ...$options)['asset'];
    }

    function operations(): array
    {
        $document = client()->request('GET', '/api/v1/openapi.json', ['auth' => []]);
        $ids = array_merge(...array_map(fn ($path) => array_column($path, 'operationId'), array_values($document['paths'])));
        $undocumented = fn (string $id): bool => (new ReflectionMethod(Client::class, $id))->getDocComment() === false;
        $missing = array_filter($ids, fn (string $id): bool => !method_exists(Client::class, $id));
        return [
            'count' => count($ids),
            'missing' => array_values($missing),
            'undocumented' => array_values(array_filter(array_diff($ids, $missing), $undocumented)),
        ];
    }

    function records(): array
    {
        $api = client();
        $made = array_map(fn (int $number): array => created($api, "Film {$number}"), range(0, 4));
        $pages = iterator_to_array($api->listAssets(['limit' => 2])->pages(), false);
        $changed = $api->updateAsset($made[0]['id'], ['video_asset' => ['title' => 'Épisode “1”', 'description' => null]]);
        $tags = $api->updateTags($made[0]['id'], ['year' => 2026, 'draft' => true]);
        $unchanged = $api->updateTags($made[0]['id'], []);
        $subtitle = $api->createSubtitle($made[0]['id'], [
            'file' => "WEBVTT\n\n00:00.000 --> 00:02.000\nHello\n",
            'language' => 'en',
            'label' => 'English',
            'is_default' => true,
        ]);
        $same = array_map(fn () => created($api, 'Once', idempotencyKey: 'once')['id'], [1, 2]);
        $rows = $api->importAssets("title,description,tags,original_filename\nNew,,,none.mp4\n");
        $deleted = $api->deleteAsset($made[1]['id']);
        return [
            'pages' => array_map(fn (array $page): array => titles($page['records']), $pages),
            'all' => titles($api->listAssets(['limit' => 2])),
            'continued' => titles($api->listAssets(['limit' => 2, 'cursor' => $pages[0]['next_cursor']])),
            'changed' => [$changed['title'], $changed['description'], $tags, $unchanged === $tags],
            'found' => $api->listAssets(['q' => 'Épisode'])->first()['id'] === $made[0]['id'],
            'none' => $api->listAssets(['q' => 'Nothing'])->first(),
            'same' => $same[0] === $same[1],
            'subtitle' => [$subtitle['label'], $subtitle['is_default']],
            'unmatched' => array_column($rows['unmatched'], 'reason'),
            'exported' => strtok($api->exportAssets(["format" => "csv"]), "\r\n"),
            'deleted' => [$deleted, refusal(fn () => $api->getAsset($made[1]['id']))],
        ];
    }

    function errors(): array
    {
        global $given;
        $api = client();
        $asset = created($api, 'Film')['id'];
        return [
            'not_found' => refusal(fn () => $api->getAsset(999_999)),
            'invalid' => refusal(fn () => $api->updateAsset($asset, ['video_asset' => ['title' => '']])),
            'conflict' => refusal(fn () => $api->deleteSource($asset)),
            'unauthorized' => refusal(fn () => client(apiKey: 'svc_wrong')->getAsset($asset)),
            'none' => refusal(fn () => client(apiKey: null)->getAsset($asset)),
            'forbidden' => refusal(fn () => client(apiKey: $given['reader'])->deleteAsset($asset)),
            'unreachable' => refusal(fn () => (new Client('http://127.0.0.1:1', maxRetries: 0))->getHealth()),
            'scheme' => refusal(fn () => (new Client('file:///etc/passwd#', maxRetries: 0))->getHealth()),
            'path' => refusal(fn () => $api->deleteTag($asset, '..')),
        ];
    }

    /** Each of these meets the next response of a server that answers in a fixed order. */
    function planned(): array
    {
        global $given;
        $results = [];
        foreach ($given['calls'] as [$method, $arguments, $retries]) {
            $from = microtime(true);
            $call = fn () => iterator_count((function (mixed $result): iterable {
                yield from is_iterable($result) ? $result : [];
            })(client(maxRetries: $retries)->$method(...$arguments)));
            $results[] = ['refusal' => refusal($call), 'seconds' => microtime(true) - $from];
        }
        return $results;
    }

    function upload(): array
    {
        global $given;
        $api = client();
        $seen = [];
        $asset = $api->upload(
            $given['file'],
            ['title' => 'Clip', 'tags' => ['year' => 2026]],
            onProgress: function (int $sent, int $total) use (&$seen): void {
                $seen[] = [$sent, $total];
            },
            waitUntilReady: true,
            waitTimeout: 100,
        );
        $file = fopen($given['file'], 'rb');
        $other = $api->upload($file, ['title' => 'Open file']);
        return [
            'asset' => $asset,
            'seen' => $seen,
            'other' => [$other['title'], $other['original_filename'], is_resource($file)],
            'missing' => refusal(fn () => $api->upload('/nowhere/film.mp4')),
            'failed' => refusal(fn () => $api->upload($given['text'], waitUntilReady: true, waitTimeout: 100)),
        ];
    }

    /** Stops for ever once `stop_at` bytes are sent, until it is killed. */
    function interrupted(): array
    {
        global $given;
        $stop = function (int $sent) use ($given): void {
            if ($sent >= $given['stop_at']) {
                echo "reached\n";
                sleep(3600);
            }
        };
        client()->upload($given['file'], ['title' => 'Interrupted'], resumeFile: $given['state'], onProgress: $stop);
        return [];
    }

    function resumed(): array
    {
        global $given;
        $seen = [];
        $note = function (int $sent) use (&$seen): void {
            $seen[] = $sent;
        };
        $asset = client()->upload($given['file'], ['title' => 'Interrupted'], resumeFile: $given['state'], onProgress: $note);
        return [
            'asset' => $asset['id'],
            'status' => $asset['input_status'],
            'first' => $seen[0],
            'left' => file_exists($given['state']),
            'peak' => memory_get_peak_usage(true),
        ];
    }

    function webhook(): array
    {
        global $given;
        ['body' => $body, 'signature' => $signature, 'secret' => $secret] = $given;
        $verify = fn (string $signature, string|array $secrets = '', mixed ...$more) => fn () => Webhook::verify($body, $signature, $secrets ?: $secret, ...$more);
        $at = function (int $later, callable $call): callable {
            return function () use ($later, $call): mixed {
                $GLOBALS['later'] = $later;
                try {
                    return $call();
                } finally {
                    $GLOBALS['later'] = 0;
                }
            };
        };
        $time = substr(explode(',', $signature)[0], 2);
        return [
            'event' => $verify($signature)(),
            'rotated' => $verify($signature, ['whsec_new', $secret])()['id'],
            'tolerant' => $at(301, $verify($signature, '', toleranceSeconds: 400))()['id'],
            'refused' => [
                'body' => refusal(fn () => Webhook::verify($body . ' ', $signature, $secret)),
                'secret' => refusal($verify($signature, ['whsec_new', 'whsec_other'])),
                'old' => refusal($at(301, $verify($signature))),
                'future' => refusal($at(-400, $verify($signature))),
                'empty' => refusal($verify('')),
                'time' => refusal($verify(str_replace($time, (string) ($time + 1), $signature))),
                'digits' => refusal($verify(str_replace($time, '١٢٣', $signature))),
                'unsigned' => refusal($verify("t={$time}")),
                'nameless' => refusal($verify('t,v1,=,,')),
                'bytes' => refusal($verify("t={$time},v1=\xe9")),
                'long' => refusal($verify("t={$time}" . str_repeat(',v1=00', 100_000))),
            ],
            'no_secret' => refusal(fn () => Webhook::verify($body, $signature, '')),
        ];
    }

    function tokens(): array
    {
        global $given;
        $api = client();
        $asset = $api->getAsset($given['asset']);
        $result = [];
        foreach (['RS256', 'EdDSA'] as $algorithm) {
            $key = $api->createSigningKey(['tenant_id' => $given['tenant_id'], 'name' => $algorithm, 'algorithm' => $algorithm]);
            $sign = fn (string|int $asset, mixed ...$options): string => PlaybackToken::sign($asset, $key['key_id'], $key['private_key'], ...$options);
            $GLOBALS['later'] = -7200;
            $expired = $sign($asset['external_id'], expiresIn: 3600);
            $GLOBALS['later'] = 0;
            $result[$algorithm] = [
                'valid' => $sign($asset['external_id']),
                'number' => $sign($asset['id']),
                'expired' => $expired,
                'thumbnail' => $sign($asset['external_id'], audience: 't'),
                'future' => $sign($asset['external_id'], notBefore: time() + 600),
                'other' => $sign('vid_other'),
            ];
        }
        $result['refused'] = array_map(
            fn (string $key) => refusal(fn () => PlaybackToken::sign('vid_a', 'sk_a', $key))['class'],
            ['', 'no key', '-----BEGIN PRIVATE KEY-----'],
        );
        return $result;
    }

    echo json_encode($argv[1](), JSON_THROW_ON_ERROR);
}
