<?php

// What WordPress loads before block.js, which is written without a build.
return [
    'dependencies' => ['wp-api-fetch', 'wp-block-editor', 'wp-blocks', 'wp-components', 'wp-element', 'wp-i18n'],
    'version' => '0.2.0',
];
