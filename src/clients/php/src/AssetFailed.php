<?php

declare(strict_types=1);

namespace Vodbox;

/** The video cannot be played; `errorCode` and the message are those of the asset's `error`. */
final class AssetFailed extends VodboxException
{
}
