<?php
/**
 * Plugin Name: vodbox
 * Description: A block with a video of your vodbox server, also of one that is not public.
 * Version: 0.2.0
 * Requires at least: 6.1
 * Requires PHP: 8.1
 * License: MIT
 * Text Domain: vodbox
 */

declare(strict_types=1);

namespace Vodbox\WordPress;

use Vodbox\Client;
use Vodbox\VodboxException;

defined('ABSPATH') || exit;

spl_autoload_register(function (string $class): void {
    $path = __DIR__ . '/client/src/' . str_replace('\\', '/', substr($class, strlen('Vodbox\\'))) . '.php';
    if (str_starts_with($class, 'Vodbox\\') && is_file($path)) {
        require $path;
    }
});

/** The name of the shares that this plugin creates, in the console of vodbox. */
const SHARE_NAME = 'WordPress';
const MOST_FOUND = 20;

/** A setting of wp-config.php (VODBOX_SERVER, VODBOX_KEY) is used instead of that in the database. */
function setting(string $name): string
{
    $constant = 'VODBOX_' . strtoupper($name);
    return (string) (defined($constant) ? constant($constant) : get_option("vodbox_{$name}", ''));
}

function client(): Client
{
    if (setting('server') === '' || setting('key') === '') {
        $message = __('Set the address of the server and an API key in Settings → vodbox.', 'vodbox');
        throw new VodboxException($message, 'not_configured');
    }
    // An editor waits for it.
    return new Client(setting('server'), apiKey: setting('key'), timeout: 10, maxRetries: 1);
}

/** @return array<string, mixed>|\WP_Error */
function answer(callable $work): array|\WP_Error
{
    try {
        return $work();
    } catch (VodboxException $error) {
        return new \WP_Error("vodbox_{$error->errorCode}", $error->getMessage(), ['status' => $error->status ?? 502]);
    }
}

/** 1:02:05, or 2:05. */
function clock(int $seconds): string
{
    return $seconds >= 3600 ? gmdate('G:i:s', $seconds) : (string) preg_replace('/^0(?=\d:)/', '', gmdate('i:s', $seconds));
}

/** Videos that can be played, for the block's list. */
function found(\WP_REST_Request $request): array|\WP_Error
{
    return answer(function () use ($request): array {
        $query = ['limit' => MOST_FOUND, 'playback_status' => 'ready'];
        $text = trim((string) $request->get_param('q'));
        $pages = client()->listAssets($text === '' ? $query : $query + ['q' => $text])->pages();
        return array_map(fn (array $asset): array => [
            'id' => $asset['id'],
            'title' => $asset['title'],
            'length' => $asset['duration_seconds'] > 0 ? clock((int) round($asset['duration_seconds'])) : '',
        ], $pages->current()['records']);
    });
}

/**
 * The address of the player of an asset. One that is not public gets a share, which can be ended in the console: a token
 * would expire in pages that are stored.
 */
function embed(\WP_REST_Request $request): array|\WP_Error
{
    return answer(function () use ($request): array {
        $client = client();
        $asset = $client->getAsset((int) $request->get_param('asset_id'));
        return [
            'src' => $asset['playback_policy'] === 'public'
                ? $client->baseUrl . '/embed/' . rawurlencode($asset['external_id'])
                : shareOf($client, $asset['id'])['embed_url'],
            'title' => $asset['title'],
            'width' => $asset['width'] ?? 16,
            'height' => $asset['height'] ?? 9,
        ];
    });
}

/** @return array<string, mixed> the share of this plugin, which is made once. */
function shareOf(Client $client, int $assetId): array
{
    foreach ($client->listShares($assetId) as $share) {
        if ($share['name'] === SHARE_NAME && $share['status'] === 'active' && !$share['has_password']) {
            return $share;
        }
    }
    return $client->createShare($assetId, ['name' => SHARE_NAME]);
}

add_action('rest_api_init', function (): void {
    $permission = fn (): bool => current_user_can('edit_posts');
    register_rest_route('vodbox/v1', '/assets', [
        'methods' => 'GET',
        'callback' => found(...),
        'permission_callback' => $permission,
        'args' => ['q' => ['type' => 'string', 'maxLength' => 200, 'default' => '']],
    ]);
    register_rest_route('vodbox/v1', '/embeds', [
        'methods' => 'POST',
        'callback' => embed(...),
        'permission_callback' => $permission,
        'args' => ['asset_id' => ['type' => 'integer', 'minimum' => 1, 'required' => true]],
    ]);
});

/** @param array{src?: string, title?: string, width?: int, height?: int} $attributes */
function render(array $attributes): string
{
    $src = (string) ($attributes['src'] ?? '');
    // A page keeps its video when the address of the server changes; another scheme than http is no video.
    if (!preg_match('#^https?://#', $src)) {
        return '';
    }
    return sprintf(
        '<figure %s><iframe src="%s" title="%s" loading="lazy" allow="autoplay; fullscreen; picture-in-picture" allowfullscreen style="width:100%%;border:0;aspect-ratio:%d/%d"></iframe></figure>',
        get_block_wrapper_attributes(),
        esc_url($src),
        esc_attr((string) ($attributes['title'] ?? '')),
        max(1, (int) ($attributes['width'] ?? 16)),
        max(1, (int) ($attributes['height'] ?? 9)),
    );
}

add_action('init', function (): void {
    register_block_type(__DIR__, ['render_callback' => render(...)]);
});

/** Links to pages of the server become players, too. */
add_action('init', function (): void {
    $server = rtrim(setting('server'), '/');
    if ($server !== '') {
        foreach (['watch', 's', 'c'] as $kind) {
            wp_oembed_add_provider("{$server}/{$kind}/*", "{$server}/oembed");
        }
    }
});

add_action('admin_init', function (): void {
    register_setting('vodbox', 'vodbox_server', ['type' => 'string', 'sanitize_callback' => 'esc_url_raw']);
    register_setting('vodbox', 'vodbox_key', [
        'type' => 'string',
        // The page does not show the key: an empty field keeps it.
        'sanitize_callback' => fn (mixed $key): string => trim((string) $key) ?: (string) get_option('vodbox_key', ''),
    ]);
    add_settings_section('vodbox', '', '__return_null', 'vodbox');
    $field = function (string $name, string $label, string $type, string $about): void {
        add_settings_field("vodbox_{$name}", $label, function () use ($name, $type, $about): void {
            $isFixed = defined('VODBOX_' . strtoupper($name));
            printf(
                '<input type="%s" class="regular-text" id="vodbox_%s" name="vodbox_%2$s" value="%s" placeholder="%s" autocomplete="off" %s><p class="description">%s</p>',
                esc_attr($type),
                esc_attr($name),
                esc_attr($type === 'password' ? '' : setting($name)),
                esc_attr($type === 'password' && setting($name) !== '' ? '••••••••' : ''),
                $isFixed ? 'disabled' : '',
                esc_html($isFixed ? __('Set in wp-config.php.', 'vodbox') : $about),
            );
        }, 'vodbox', 'vodbox', ['label_for' => "vodbox_{$name}"]);
    };
    $field('server', __('Address of the server', 'vodbox'), 'url', __('Such as https://video.example.com.', 'vodbox'));
    $field('key', __('API key', 'vodbox'), 'password', __('With the scopes assets:read, assets:write and playback:read.', 'vodbox'));
});

add_action('admin_menu', function (): void {
    add_options_page('vodbox', 'vodbox', 'manage_options', 'vodbox', function (): void {
        echo '<div class="wrap"><h1>vodbox</h1><form method="post" action="options.php">';
        settings_fields('vodbox');
        do_settings_sections('vodbox');
        submit_button();
        echo '</form></div>';
    });
});
