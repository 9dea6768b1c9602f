<?php

declare(strict_types=1);

namespace Vodbox;

/** The request is not a delivery of this webhook, or is too old. Respond with 400. */
final class WebhookException extends \RuntimeException
{
}
